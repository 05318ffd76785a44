// The boxes of a tree, of calls or of modules: chosen by a click, gone into by a double click.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { Button } from "../button";
import type { Table } from "../columns";
import { grouped, percent } from "../format";
import { combined } from "../shared";
import type { ChartProps } from "./chart";
import { fittedNames, Mark } from "./mark";
import type { Box } from "./place";
import { Plot } from "./plot";
import { toggled } from "./select";
import { unitOf } from "./unit";

const MERGED = "(narrower than 0.1 %)"; // as hta_widgets/charts/flame_boxes.py names it
const NAMED = 64; // px: narrower boxes hold no name
export const LINE = 14; // px: of text

export interface TreeChart {
  /** [total, own, label, class of time] of each weight */
  weights: [string, string, string, string][];
  /** what the names of events begin with, before a node's own name */
  prefix?: string;
  /** the name of what lies in no other node */
  rest?: string;
}

/** Where a node is drawn. */
export interface Node extends Box {
  row: number;
  /** it holds others: its name stands above them */
  holds?: boolean;
  /** it stands for what those that it holds leave of it */
  itself?: boolean;
  /** what it says that it takes; default: its total */
  value?: number;
}

export interface TreeProps extends ChartProps<TreeChart> {
  label: string;
  /** all nodes together */
  everything: string;
  place(tree: Tree, root: number, weight: number): readonly Node[];
}

export function TreeBoxes({ marks, chart, width, selecting, label, everything, place }: TreeProps) {
  const weight = useMemo(() => signal(0), []);
  const top = useMemo(() => signal<string | null>(null), []);
  const tree = useMemo(() => new Tree(marks), [marks]);
  const number = weight.value;
  const [column, , , timeClass] = chart.weights[number] ?? ["", "", "", "host"];
  const root = top.value === null ? -1 : tree.find(top.value);
  const nodes = place(tree, root, number);
  const whole = tree.sum(root, number);
  const totals = marks.numbers(`total_${number}`);
  const short = marks.texts("short");
  const counts = marks.numbers("count");
  const unit = (value: number) => unitOf(column, [value]);
  const chosen = new Set(selecting.names.value);
  const event = (row: number) => `${chart.prefix ?? ""}${tree.names[row] ?? ""}`;
  const any = nodes.some(({ row }) => chosen.has(event(row)));
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
            <Button onClick={() => go(-1)}>{everything}</Button>
          </>
        )}
        <span class="hta-muted">
          {unit(whole).text(whole)} in all. Click: choose events. Double click or Z: go in.
        </span>
      </div>
      <Plot
        label={label}
        width={width}
        height={nodes.reduce((height, { y, height: own }) => Math.max(height, y + own), 0)}
        onKeyDown={(event) => {
          if (combined(event)) return;
          const row = (event.target as Element).closest("[data-row]")?.getAttribute("data-row");
          if (row && event.key.toLowerCase() === "z") go(Number(row));
          else if (event.key === "Escape" && root >= 0) go(tree.parents[root] ?? -1);
          else return;
          event.stopPropagation();
        }}
      >
        {nodes.map(({ row, x, y, width, height, holds, itself, value = totals[row] ?? 0 }, order) => {
          const name = tree.names[row] ?? "";
          const share = whole > 0 ? percent((100 * value) / whole) : "";
          const merged = name === MERGED || name === chart.rest;
          const calls = itself || name === chart.rest ? "" : `, ${count(counts[row] ?? 0)}`;
          const description = `${name}${itself ? " itself" : ""}: ${unit(value).text(value)}${share && `, ${share}`}${calls}`;
          return (
            // biome-ignore lint/a11y/noStaticElementInteractions: the keyboard has Z, see above
            <g
              key={itself ? -row : row + 1}
              data-row={row}
              onDblClick={() => !merged && go(row)}
              // a double click would select text of the page
              onMouseDown={(event) => event.detail > 1 && event.preventDefault()}
            >
              <Mark
                label={description}
                first={order === 0}
                pressed={chosen.has(event(row))}
                onPick={
                  merged
                    ? null
                    : () => {
                        selecting.names.value = toggled(selecting.names.value, [event(row)]);
                      }
                }
              >
                <title>{`${description} (${unit(value).exact(value)})`}</title>
                <rect
                  class={holds ? "hta-frame" : "hta-box"}
                  x={x}
                  y={y}
                  width={Math.max(0.5, width - 1)}
                  height={Math.max(0.5, height - 1)}
                  fill={holds ? undefined : `var(--hta-${merged ? "idle" : timeClass})`}
                  data-dim={(any && !chosen.has(event(row))) || undefined}
                />
                {width > NAMED && height > LINE && (
                  <text class="hta-bar-name" x={x + 4} y={y + LINE - 1}>
                    {itself ? "itself" : fittedNames([short[row] ?? name], width - 8)}
                  </text>
                )}
                {!holds && width > NAMED && height > 2 * LINE + 4 && (
                  <text class="hta-bar-name" x={x + 4} y={y + 2 * LINE}>
                    {unit(value).text(value)}
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

/** The boxes as a tree: row -1 is the whole. */
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

  children(row: number): readonly number[] {
    return this.#children.get(row) ?? [];
  }

  /** The rows that are drawn at the top when `root` is gone into. */
  tops(root: number): readonly number[] {
    return root < 0 ? this.children(-1) : [root];
  }

  /** What the boxes from `root` on take together on screen. */
  sum(root: number, weight: number): number {
    const sizes = this.sizes(weight);
    return this.tops(root).reduce((sum, row) => sum + (sizes[row] ?? 0), 0);
  }

  sizes(weight: number): Float64Array {
    return this.marks.numbers(`width_${weight}`);
  }
}
