// Describes a slice for the tooltip and for the line below the timeline. Names are untrusted: text only.

import { duration, exact } from "../format";
import { element } from "../page";
import { visible } from "../visible";
import { shortName } from "./labels";
import { classLabel } from "./palette";
import type { Gap } from "./source";
import type { Flow, Outline, Slice, TrackInfo } from "./types";

const GAP = 14;

export interface Facts {
  name: string;
  lines: string[];
}

export function trackOf(outline: Outline, lane: number): TrackInfo | undefined {
  return outline.tracks.find((t) => lane >= t.first && lane < t.first + t.sizes.length);
}

export function describe(outline: Outline, slice: Slice, flows: readonly Flow[]): Facts {
  const category = outline.categories[outline.category_of[slice.kind] as number] ?? "";
  const label = classLabel(outline.class_of[slice.kind] as number);
  const where = placeOf(outline, slice.lane);
  const name = outline.names[slice.kind] as string;
  if (slice.count > 1) {
    return {
      name: `${exact(slice.count, "slices")}, the longest: ${name}`,
      lines: [where, `start ${exact(slice.start, "ns")}`, "zoom in to see each"],
    };
  }
  const lines = [
    category && category !== label ? `${label} · ${category}` : label,
    ...(slice.was
      ? [`what if: ${times(slice.start, slice.dur)}`, `recorded: ${times(...slice.was)}`]
      : [
          `duration ${duration(slice.dur)} (${exact(slice.dur, "ns")})`,
          `start ${exact(slice.start, "ns")} · end ${exact(slice.start + slice.dur, "ns")}`,
        ]),
    where,
  ];
  for (const [from, to] of flows.slice(0, 1)) {
    const other = from.id === slice.id ? to : from;
    const gap = to.start - (from.start + from.dur);
    const what = from.id === slice.id ? "launches" : "launched by";
    lines.push(
      `${what} ${shortName(outline.names[other.kind] as string)} · gap ${duration(gap)} (${exact(gap, "ns")})`,
    );
  }
  return { name, lines };
}

function times(start: number, dur: number): string {
  return `${duration(dur)} (${exact(dur, "ns")}) · start ${exact(start, "ns")} · end ${exact(start + dur, "ns")}`;
}

/** A time in which a device stream does nothing. */
export function describeGap(outline: Outline, lane: number, [start, end]: Gap): Facts {
  const lines = [
    exact(end - start, "ns"),
    `from ${exact(start, "ns")} to ${exact(end, "ns")}`,
    placeOf(outline, lane),
    ...(outline.replayed ? [] : ["click for details, R selects this time"]),
  ];
  return { name: `${outline.replayed ? "what if: " : ""}idle ${duration(end - start)}`, lines };
}

function placeOf(outline: Outline, lane: number): string {
  const track = trackOf(outline, lane);
  const rank = outline.ranks.find((r) => r.rank === track?.rank)?.label ?? "";
  return `rank ${rank} · ${track?.label ?? ""}`;
}

export class Tooltip {
  readonly el: HTMLElement;

  constructor(className = "hta-timeline-tip") {
    this.el = element("div", className);
    this.el.hidden = true;
  }

  show(facts: Facts, colour: string, x: number, y: number, width: number, height: number): void {
    const name = element("strong");
    name.textContent = visible(facts.name);
    name.style.borderLeftColor = colour;
    const lines = facts.lines.map((text) => {
      const line = element("div");
      line.textContent = visible(text);
      return line;
    });
    this.el.replaceChildren(name, ...lines);
    this.el.hidden = false;
    const box = this.el.getBoundingClientRect();
    const left = x + GAP + box.width > width ? x - GAP - box.width : x + GAP;
    const top = y + GAP + box.height > height ? y - GAP - box.height : y + GAP;
    this.el.style.left = `${Math.max(0, left)}px`;
    this.el.style.top = `${Math.max(0, top)}px`;
  }

  hide(): void {
    if (!this.el.hidden) this.el.hidden = true;
  }
}
