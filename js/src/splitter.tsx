// The edge between the timeline and what is selected: drags, and arrow keys, move it; the notebook's page remembers it.

import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { consume } from "./page";
import { remember, remembered } from "./remembered";
import { combined } from "./shared";

const NAME = "inspector-width";
const [NARROWEST, USUAL, WIDEST] = [240, 320, 720];
const STEP = 24;

/** `resize` gets the width of what stands right of the edge, in CSS pixels. */
export function Splitter({ resize }: { resize(width: number): void }) {
  const width = useSignal(within(Number(remembered(NAME) ?? USUAL)));
  useEffect(() => resize(width.value), [width.value]);
  const set = (next: number) => {
    width.value = within(next);
    remember(NAME, String(width.value));
  };
  const drag = (event: PointerEvent) => {
    const edge = event.currentTarget as HTMLElement;
    const [from, before] = [event.clientX, width.value];
    const move = (moved: PointerEvent) => set(before + from - moved.clientX);
    const end = () => edge.removeEventListener("pointermove", move);
    edge.setPointerCapture(event.pointerId);
    edge.addEventListener("pointermove", move);
    edge.addEventListener("lostpointercapture", end, { once: true });
    event.preventDefault();
  };
  const key = (event: KeyboardEvent) => {
    const by = { ArrowLeft: STEP, ArrowRight: -STEP }[event.key];
    if (combined(event) || !by) return;
    consume(event);
    set(width.value + by);
  };
  return (
    // biome-ignore lint/a11y/useSemanticElements: a rule cannot be moved
    <div
      class="hta-splitter"
      role="separator"
      tabIndex={0}
      aria-label="Width of the inspector"
      aria-orientation="vertical"
      aria-valuemin={NARROWEST}
      aria-valuemax={WIDEST}
      aria-valuenow={width.value}
      title="Drag, or ← →: width of the inspector; double click: as it was"
      onPointerDown={drag}
      onDblClick={() => set(USUAL)}
      onKeyDown={key}
    />
  );
}

function within(width: number): number {
  return Number.isFinite(width) ? Math.min(Math.max(width, NARROWEST), WIDEST) : USUAL;
}
