// An edge that is moved by dragging it, or with the arrow keys; the notebook's page remembers where it was left.

import { signal as makeSignal, type Signal } from "@preact/signals";
import { consume } from "./page";
import { remember, remembered } from "./remembered";
import { combined } from "./shared";

const STEP = 24;

export interface Edge {
  /** under which its place is remembered; "" for not at all */
  name: string;
  label: string;
  /** which size it changes: the width of what stands right of it or left of it, the height of what stands above it */
  of: "width" | "width before" | "height";
  /** in CSS pixels */
  least: number;
  usual: number;
  most: number;
}

/** The size that was left, else the usual one. */
export function sizeOf(edge: Edge): Signal<number> {
  return makeSignal(within(edge, Number((edge.name && remembered(edge.name)) || edge.usual)));
}

export function Splitter({ edge, size }: { edge: Edge; size: Signal<number> }) {
  const upright = edge.of !== "height";
  const grows = edge.of === "width" ? -1 : 1;
  const set = (next: number) => {
    size.value = within(edge, next);
    if (edge.name) remember(edge.name, String(size.value));
  };
  const drag = (event: PointerEvent) => {
    const handle = event.currentTarget as HTMLElement;
    const at = (moved: PointerEvent) => (upright ? moved.clientX : moved.clientY);
    const [from, before] = [at(event), size.value];
    const move = (moved: PointerEvent) => set(before + grows * (at(moved) - from));
    const end = () => handle.removeEventListener("pointermove", move);
    handle.setPointerCapture(event.pointerId);
    handle.addEventListener("pointermove", move);
    handle.addEventListener("lostpointercapture", end, { once: true });
    event.preventDefault();
  };
  const [back, on] = upright ? ["ArrowLeft", "ArrowRight"] : ["ArrowUp", "ArrowDown"];
  const key = (event: KeyboardEvent) => {
    const by = event.key === back ? -STEP : event.key === on ? STEP : 0;
    if (combined(event) || !by) return;
    consume(event);
    set(size.value + grows * by);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved
    <div
      class="hta-splitter"
      role="separator"
      tabIndex={0}
      aria-label={edge.label}
      aria-orientation={upright ? "vertical" : "horizontal"}
      aria-valuemin={edge.least}
      aria-valuemax={edge.most}
      aria-valuenow={size.value}
      title={`Drag, or ${upright ? "← →" : "↑ ↓"}: ${edge.label.toLowerCase()}; double click: as it was`}
      onPointerDown={drag}
      onDblClick={() => set(edge.usual)}
      onKeyDown={key}
    />
  );
}

function within({ least, usual, most }: Edge, size: number): number {
  return Number.isFinite(size) ? Math.round(Math.min(Math.max(size, least), most)) : usual; // Python has whole pixels
}
