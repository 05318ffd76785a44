// Call stacks as boxes: callers above what they call, as wide as their time. A double click goes into a box.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Button } from "../button";
import type { Table } from "../columns";
import { grouped, percent } from "../format";
import { combined } from "../shared";
import type { ChartProps } from "./chart";
import { fittedNames, Mark } from "./mark";
import { Plot } from "./plot";
import { toggled } from "./select";
import { unitOf } from "./unit";

const ROW = 18;
const DEEPEST = 24;
const NARROWEST = 1; // px
const MERGED = "(narrower than 0.1 %)"; // as hta_widgets/charts/flame_boxes.py names it

export interface FlameChart {
  type: "flame";
  /** [total, own, label, class of time] of each weight */
  weights: [string, string, string, string][];
}

interface Box {
  row: number;
  depth: number;
  start: number;
  width: number;
}

export function Flame({ marks, chart, width, selecting }: ChartProps<FlameChart>) {
  const weight = useMemo(() => signal(0), []);
  const top = useMemo(() => signal<string | null>(null), []);
  const tree = useMemo(() => new Tree(marks), [marks]);
  const number = weight.value;
  const [column, , , timeClass] = chart.weights[number] ?? ["", "", "", "host"];
  const root = top.value === null ? -1 : tree.find(top.value);
  const { boxes, whole } = tree.layout(root, number, width);
  const totals = marks.numbers(`total_${number}`);
  const short = marks.texts("short");
  const counts = marks.numbers("count");
  const unit = (value: number) => unitOf(column, [value]);
  const chosen = new Set(selecting.names.value);
  const any = boxes.some(({ row }) => chosen.has(tree.names[row] ?? ""));
  const depth = boxes.reduce((deepest, box) => Math.max(deepest, box.depth), 0);
  const go = (row: number) => {
    top.value = row < 0 ? null : tree.path(row);
  };
  return (
    <>
      <div class="hta-bar">
        {chart.weights.map(([total, , label], i) => (
          <Button
            key={total}
            aria-pressed={i === number}
            onClick={() => {
              weight.value = i;
            }}
          >
            {label}
          </Button>
        ))}
        {root >= 0 && (
          <>
            <Button onClick={() => go(tree.parents[root] ?? -1)}>Up</Button>
            <Button onClick={() => go(-1)}>Whole program</Button>
          </>
        )}
        <span class="hta-muted">Click: choose its events. Double click or Z: go into it.</span>
      </div>
      <Plot
        label="Call stacks"
        width={width}
        height={(depth + 1) * ROW}
        onKeyDown={(event) => {
          if (combined(event)) return;
          const row = (event.target as Element).closest("[data-row]")?.getAttribute("data-row");
          if (row && event.key.toLowerCase() === "z") go(Number(row));
          else if (event.key === "Escape" && root >= 0) go(tree.parents[root] ?? -1);
          else return;
          event.stopPropagation();
        }}
      >
        {boxes.map(({ row, depth, start, width }, place) => {
          const name = tree.names[row] ?? "";
          const total = totals[row] ?? 0;
          const share = whole > 0 ? percent((100 * total) / whole) : "";
          const merged = name === MERGED;
          const description = `${name}: ${unit(total).text(total)}${share && `, ${share}`}, ${count(counts[row] ?? 0)}`;
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: the keyboard has Z, see above
            <g
              key={row}
              data-row={row}
              onDblClick={() => !merged && go(row)}
              // a double click would select text of the page
              onMouseDown={(event) => event.detail > 1 && event.preventDefault()}
            >
              <Mark
                label={description}
                first={place === 0}
                pressed={chosen.has(name)}
                onPick={
                  merged
                    ? null
                    : () => {
                        selecting.names.value = toggled(selecting.names.value, [name]);
                      }
                }
              >
                <title>{`${description} (${unit(total).exact(total)})`}</title>
                <rect
                  class="hta-box"
                  x={start}
                  y={depth * ROW}
                  width={Math.max(0.5, width - 1)}
                  height={ROW - 1}
                  fill={`var(--hta-${merged ? "idle" : timeClass})`}
                  data-dim={(any && !chosen.has(name)) || undefined}
                />
                {width > 64 && (
                  <text class="hta-bar-name" x={start + 4} y={depth * ROW + 13}>
                    {fittedNames([short[row] ?? name], width - 8)}
                  </text>
                )}
              </Mark>
            </g>
          );
        })}
      </Plot>
    </>
  );
}

const count = (calls: number) => (calls === 1 ? "1 call" : `${grouped(calls)} calls`);

/** The boxes as a tree: row -1 is the whole program. */
export class Tree {
  readonly parents: Float64Array;
  readonly names: readonly string[];
  #children = new Map<number, number[]>();

  constructor(private readonly marks: Table) {
    this.parents = marks.numbers("parent");
    this.names = marks.texts("name");
    for (const [row, parent] of this.parents.entries()) {
      const others = this.#children.get(parent);
      if (others) others.push(row);
      else this.#children.set(parent, [row]);
    }
  }

  /** The names from the top down to the row: it stays the same when the rows are computed anew. */
  path(row: number): string {
    const names: string[] = [];
    for (let at = row; at >= 0; at = this.parents[at] ?? -1) names.unshift(this.names[at] ?? "");
    return JSON.stringify(names);
  }

  find(path: string): number {
    let at = -1;
    for (const name of JSON.parse(path) as string[]) {
      const next = this.#children.get(at)?.find((row) => this.names[row] === name);
      if (next === undefined) return -1;
      at = next;
    }
    return at;
  }

  /** Boxes of what lies below `root`, itself included, that are at least a pixel wide. */
  layout(root: number, weight: number, width: number): { boxes: Box[]; whole: number } {
    const widths = this.marks.numbers(`width_${weight}`);
    const of = (row: number) => widths[row] ?? 0;
    const tops = root < 0 ? (this.#children.get(-1) ?? []) : [root];
    const whole = tops.reduce((sum, row) => sum + of(row), 0);
    const boxes: Box[] = [];
    const place = (rows: readonly number[], from: number, depth: number) => {
      let start = from;
      for (const row of rows) {
        const size = (width * of(row)) / (whole || 1);
        if (size >= NARROWEST) {
          boxes.push({ row, depth, start, width: size });
          if (depth < DEEPEST) place(this.#children.get(row) ?? [], start, depth + 1);
        }
        start += size;
      }
    };
    place(tops, 0, 0);
    return { boxes, whole };
  }
}
