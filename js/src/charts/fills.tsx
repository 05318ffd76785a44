// Filled rectangles: a class's colour, and where several parts share it a pattern on top.
//
// The pattern is drawn as one path, not as an SVG <pattern>: those are found by id, and a page holds many charts.

import type { ComponentChildren } from "preact";
import { colour, type Series } from "./legend";

const STEP = 5;
const WIDE_STEP = 9; // of a second colour, which must be seen as such

interface FillProps {
  series: Series;
  x: number;
  y: number;
  width: number;
  height: number;
  children?: ComponentChildren;
}

export function Fill({ series, x, y, width, height, children }: FillProps) {
  const stroke = series.over ? `var(--hta-${series.over})` : "var(--hta-background)";
  return (
    <>
      <rect {...{ x, y, width, height }} fill={colour(series)}>
        {children}
      </rect>
      {series.pattern && width > 2 && (
        <path
          class="hta-pattern"
          d={pattern(series.pattern, x, y, width, height, series.over ? WIDE_STEP : STEP)}
          stroke={stroke}
          stroke-width={series.over ? 4 : 1.2}
        />
      )}
    </>
  );
}

/** Lines within the rectangle: "/" rising, "x" crossed, "." dotted. */
export function pattern(
  kind: string,
  x: number,
  y: number,
  width: number,
  height: number,
  step = STEP,
): string {
  const parts: string[] = [];
  if (kind === ".") {
    for (let top = y + 2.5; top < y + height - 1; top += step)
      for (let left = x + 2; left < x + width - 1; left += step) parts.push(`M${left} ${top}h1.2`);
    return parts.join("");
  }
  for (let shift = step - height; shift < width; shift += step) {
    // from the bottom edge at `shift` up and to the right, cut at the sides
    const from = Math.max(0, shift);
    const to = Math.min(width, shift + height);
    if (to <= from) continue;
    parts.push(`M${x + from} ${y + height - (from - shift)}L${x + to} ${y + height - (to - shift)}`);
    if (kind === "x") parts.push(`M${x + from} ${y + (from - shift)}L${x + to} ${y + (to - shift)}`);
  }
  return parts.join("");
}
