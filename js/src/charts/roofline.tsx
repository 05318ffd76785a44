// Operators below the roofs of their device, both axes logarithmic, and beside them the list by time above the roof.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { duration, grouped } from "../format";
import { consume } from "../page";
import type { ChartProps } from "./chart";
import { fittedNames, Mark } from "./mark";
import { max } from "./numbers";
import { type Labelled, LINE, placeLabels, textWidth } from "./place";
import { axes, Grid, RoofLines, roofLabels, roofLevels } from "./roof_area";
import { RoofList, sharedDetail } from "./roof_list";
import { BOUNDS, facts, outline, type Row, rowsOf, type Shape } from "./roof_rows";
import { roofsOf } from "./roofs";
import { toggled } from "./select";

const HEIGHT = 340;
const [LEFT, RIGHT, TOP, BOTTOM] = [48, 22, 20, 36]; // at the right, room for half a number below the axis
const WIDE = 900; // from here on the list stands beside the chart
const [LEAST, LARGEST] = [3, 18]; // radius, px
const LABELS = 8;
const LONGEST_LABEL = 150;
const CLICK = 3; // px: what moves less is no drag

export interface RooflineChart {
  type: "roofline";
}

export function RooflineView({ marks, width, selecting }: ChartProps<RooflineChart>) {
  const over = useMemo(() => signal<number | null>(null), []);
  const drag = useMemo(() => signal<[number, number, number, number] | null>(null), []);
  const rows = useMemo(() => rowsOf(marks), [marks]);
  const roofs = useMemo(() => roofsOf(marks), [marks]);
  const drawn = rows.filter(({ x, y }) => x > 0 && y > 0);
  const together = sharedDetail(marks.texts("detail"));
  const beside = width >= WIDE;
  const outer = beside ? Math.floor(width * 0.42) : width;
  const inner = Math.max(120, outer - LEFT - RIGHT);
  const height = HEIGHT - TOP - BOTTOM;
  const [x, y, ends] = axes(drawn, roofs, inner, height);
  const greatest = max(drawn.map(({ size }) => size)) || 1;
  const points = drawn
    .map((row) => ({ ...row, at: x(row.x), top: y(row.y), r: radius(row.size / greatest) }))
    .sort((a, b) => b.size - a.size);
  const ceilings = roofLabels(roofs, x, y, ends, inner);
  const first = points.slice(0, LABELS);
  const texts = fittedNames(
    first.map(({ short }) => short),
    LONGEST_LABEL,
  );
  const asked: Labelled[] = first.map(({ at, top, r }, i) => ({
    x: at,
    y: top,
    r,
    width: textWidth(texts[i] ?? ""),
  }));
  const solid = first.map(({ at, top, r }) => ({ x: at - r, y: top - r, width: 2 * r, height: 2 * r }));
  const taken = [...ceilings.map(({ box }) => box), ...roofLevels(roofs, x, y, inner), ...solid];
  const boxes = placeLabels(asked, taken, { width: inner, height });
  const { names } = selecting;
  const chosen = new Set(names.value);
  const any = rows.some(({ label }) => chosen.has(label));
  const pick = (label: string) => {
    names.value = toggled(names.value, [label]);
  };
  const aside = rows.filter(({ x, y }) => !(x > 0 && y > 0));
  const shown = points.find(({ row }) => row === over.value);

  const place = (event: PointerEvent): [number, number] => {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  const select = ([ax, ay, bx, by]: [number, number, number, number], add: boolean) => {
    const inside = points.filter(
      ({ at, top }) =>
        at >= Math.min(ax, bx) &&
        at <= Math.max(ax, bx) &&
        top >= Math.min(ay, by) &&
        top <= Math.max(ay, by),
    );
    const found = inside.map(({ label }) => label);
    names.value = [...new Set(add ? [...names.value, ...found] : found)].sort();
  };
  const pointAt = (event: Event) => {
    const mark = (event.target as Element).closest(".hta-bar-row")?.querySelector("[data-row]");
    over.value = mark ? Number(mark.getAttribute("data-row")) : null;
  };
  const none = () => {
    over.value = null;
  };

  return (
    <div class="hta-roof" data-beside={beside}>
      <div class="hta-roof-chart" style={{ width: `${outer}px` }}>
        <ul class="hta-legend">
          {Object.entries(BOUNDS)
            .filter(([bound]) => drawn.some((row) => row.bound === bound))
            .map(([bound, [shape, colour, words]]) => (
              <li key={bound}>
                <svg class="hta-swatch" width={10} height={10} aria-hidden="true">
                  <path d={outline(shape, 5, 5, 4)} fill={`var(--hta-${colour})`} />
                </svg>
                <span>{words}</span>
              </li>
            ))}
          <li>area: time{together && `, ${together}`}</li>
        </ul>
        {/* biome-ignore lint/a11y/useSemanticElements: an svg holds no fieldset */}
        <svg
          class="hta-bars hta-roofline"
          width={outer}
          height={HEIGHT}
          role="group"
          aria-label="TFLOP/s by FLOP per byte, below the roofs of the device. Largest first."
          onPointerOver={pointAt}
          onPointerLeave={none}
          onFocusIn={pointAt}
          onFocusOut={none}
          onKeyDown={(event) => {
            if (event.key !== "Escape" || !names.value.length) return;
            names.value = [];
            consume(event);
          }}
        >
          <g transform={`translate(${LEFT} ${TOP})`}>
            <Grid {...{ x, y, ends, inner, height }} />
            <RoofLines {...{ roofs, x, y, ends, inner, height }} />
            {/* biome-ignore lint/a11y/noStaticElementInteractions: the marks are chosen one by one by keyboard */}
            <rect
              class="hta-brush"
              width={inner}
              height={height}
              onPointerDown={(event) => {
                if (event.button !== 0) return;
                event.currentTarget.setPointerCapture?.(event.pointerId);
                const at = place(event);
                drag.value = [...at, ...at];
              }}
              onPointerMove={(event) => {
                const from = drag.value;
                if (from && event.buttons & 1) drag.value = [from[0], from[1], ...place(event)];
              }}
              onPointerUp={(event) => {
                const area = drag.value;
                drag.value = null;
                if (area && Math.hypot(area[2] - area[0], area[3] - area[1]) >= CLICK)
                  select(area, event.shiftKey);
              }}
              onPointerCancel={() => {
                drag.value = null;
              }}
              onDblClick={() => {
                names.value = [];
              }}
            >
              <title>Drag to choose the marks inside; double-click to choose none</title>
            </rect>
            {points.map((point, i) => {
              const [shape, colour] = BOUNDS[point.bound] ?? (BOUNDS[""] as [Shape, string, string]);
              return (
                <Mark
                  key={point.row}
                  label={`${facts(point).join(", ")}. Choose its events.`}
                  first={i === 0}
                  pressed={chosen.has(point.label)}
                  dim={any && !chosen.has(point.label)}
                  onPick={() => pick(point.label)}
                >
                  <path
                    class="hta-dot-mark"
                    data-row={point.row}
                    d={outline(shape, point.at, point.top, point.r)}
                    fill={`var(--hta-${colour})`}
                  />
                </Mark>
              );
            })}
            <g class="hta-roof-labels">
              {ceilings.map(({ text, box, transform }) => (
                <text key={text} {...(transform ? { transform } : { x: box.x, y: box.y + LINE - 3 })}>
                  {text}
                </text>
              ))}
              {boxes.map(
                (box, i) =>
                  box && (
                    <text key={first[i]?.row} class="hta-bar-name" x={box.x} y={box.y + LINE - 3}>
                      {texts[i]}
                    </text>
                  ),
              )}
            </g>
            <Brushed area={drag.value} />
          </g>
        </svg>
        {shown && <Tip point={shown} at={shown.at + LEFT} top={shown.top} width={outer} />}
        {aside.length > 0 && (
          <p class="hta-muted">
            {`${grouped(aside.length)} of ${grouped(rows.length)} (${duration(
              aside.reduce((sum, { size }) => sum + size, 0),
            )}) ${aside.length === 1 ? "has" : "have"} no counted FLOPs: in the list only.`}
          </p>
        )}
      </div>
      <RoofList {...{ marks, chosen, pick }} />
    </div>
  );
}

type Point = Row & { at: number; top: number; r: number };
function Brushed({ area }: { area: [number, number, number, number] | null }) {
  if (!area) return null;
  const [ax, ay, bx, by] = area;
  return (
    <rect
      class="hta-bar-hit hta-brushed"
      x={Math.min(ax, bx)}
      y={Math.min(ay, by)}
      width={Math.abs(bx - ax)}
      height={Math.abs(by - ay)}
    />
  );
}

function Tip({ point, at, top, width }: { point: Point; at: number; top: number; width: number }) {
  const [, ...others] = facts(point);
  const left = at < width / 2;
  const style = {
    top: `${top + TOP}px`,
    ...(left ? { left: `${at + point.r + 8}px` } : { right: `${width - at + point.r + 8}px` }),
  };
  return (
    <div class="hta-roof-tip" style={style} aria-hidden="true">
      <strong>{point.detail ? `${point.short}, ${point.detail}` : point.short}</strong>
      {others.map((text) => (
        <div key={text}>{text}</div>
      ))}
    </div>
  );
}

/** As large as its share of the largest, in area. */
const radius = (share: number) => Math.max(LEAST, LARGEST * Math.sqrt(share));
