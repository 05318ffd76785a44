// One horizontal bar per label, the longest first: what takes most, at a glance. Or the shortest, where low is bad.

import { percent } from "../format";
import type { ChartProps } from "./chart";
import { fitted, fittedNames, labelWidth, Mark } from "./mark";
import { max } from "./numbers";
import { Plot } from "./plot";
import { pickRank, pickWindow, toggled } from "./select";
import { inWords, unitOf } from "./unit";

const ROW = 20;
const BAR = 12;
const VALUE = 72;

export interface BarsChart {
  type: "bars";
  value: string;
  label: string[];
  names: string;
  window: [string, string] | null;
  note?: string;
  /** how the rows of a label become one value; a mean counts each by its weight */
  combine?: "sum" | "mean" | "max";
  weight?: string;
  /** the least is on top */
  ascending?: boolean;
  /** the value of a full bar */
  limit?: number | null;
  measure?: string;
  /** marks tell the share of the whole that a bar and those above it make up, in % */
  cumulative?: boolean;
}

const COMBINED = { sum: "sum", mean: "mean", max: "maximum" };

export function Rows({ marks, chart, width, selecting }: ChartProps<BarsChart>) {
  const values = marks.numbers("value");
  const counts = marks.numbers("count");
  const labels = marks.texts("label");
  const classes = marks.texts("time_class");
  const names = marks.texts("names").map((text): string[] => JSON.parse(text));
  const ranks = [...marks.numbers("rank")];
  const [starts, ends] = [marks.numbers("start"), marks.numbers("end")];
  const unit = (value: number) => unitOf(chart.value, [value]);
  const longest = chart.limit ?? (max(values) || 1);
  const { combine = "sum", ascending } = chart;
  const direction = ascending ? "lowest first" : "largest first";
  const name = Math.round(width * (chart.note ? 0.34 : 0.4));
  const reached = chart.cumulative ? [...marks.numbers("cumulative")] : [];
  const notes = chart.cumulative ? reached.map((share) => percent(share)) : marks.texts("note");
  const beside = chart.note || chart.cumulative ? labelWidth(notes, width * 0.3) : 0;
  const inner = Math.max(40, width - name - VALUE - beside - 16);
  const shown = fittedNames(marks.texts("short"), name - 12);
  const chosen = new Set(selecting.names.value);

  const picks = (row: number): [string, boolean, (event: MouseEvent | KeyboardEvent) => void] | null => {
    const [own, start, end, rank] = [names[row], starts[row], ends[row], ranks[row]];
    if (chart.window && start !== undefined && end !== undefined) {
      const now = selecting.window.value;
      const pressed = now?.[0] === start && now[1] === end;
      return ["Select this stretch of time.", pressed, () => pickWindow(selecting, start, end)];
    }
    if (own?.length) {
      const pressed = own.every((item) => chosen.has(item));
      return [
        "Choose its events.",
        pressed,
        () => {
          selecting.names.value = toggled(selecting.names.value, own);
        },
      ];
    }
    if (rank === undefined) return null;
    const all = [...new Set(ranks)];
    return [
      "Select this rank.",
      selecting.ranks.value.includes(rank),
      (event) => pickRank(selecting, all, rank, event),
    ];
  };
  const marked = labels.map((_, row) => picks(row));
  const any = marked.some((picked) => picked?.[1]);

  return (
    <>
      {combine !== "sum" && (
        <p class="hta-legend">
          {chart.measure || inWords(chart.value)}: {COMBINED[combine]}
          {chart.weight && ` by ${inWords(chart.weight)}`}, {direction}
          {chart.note && `; at the right: ${inWords(chart.note)}`}
        </p>
      )}
      {reached.length > 0 && (
        <p class="hta-legend">Line, and at the right: the share of all that a bar and those above make up</p>
      )}
      <Plot label={direction} width={name + inner + VALUE + beside + 16} height={labels.length * ROW}>
        {labels.map((label, row) => {
          const value = values[row] ?? 0;
          const several = (counts[row] ?? 1) > 1 ? `, the ${COMBINED[combine]} of ${counts[row]} rows` : "";
          const picked = marked[row];
          return (
            <Mark
              key={label + row}
              label={`${label}: ${unit(value).text(value)}${notes[row] ? `, ${notes[row]}` : ""}${reached.length ? " with those above" : ""}. ${picked?.[0] ?? ""}`}
              transform={`translate(0 ${row * ROW})`}
              first={row === 0}
              pressed={picked?.[1]}
              dim={any && !picked?.[1]}
              onPick={picked?.[2] ?? null}
            >
              <title>{`${label}: ${unit(value).exact(value)}${several}${chart.note && notes[row] ? `; ${notes[row]}` : ""}`}</title>
              <rect class="hta-bar-hit" width="100%" height={ROW} />
              <text class="hta-bar-name" x={4} y={ROW - 6}>
                {shown[row]}
              </text>
              <rect
                x={name}
                y={(ROW - BAR) / 2}
                width={Math.max(1, (inner * Math.min(longest, Math.max(0, value))) / longest)}
                height={BAR}
                fill={`var(--hta-${classes[row]}, var(--hta-idle))`}
              />
              <text x={name + inner + VALUE + 8} y={ROW - 6} text-anchor="end">
                {unit(value).text(value)}
              </text>
              {beside > 0 && (
                <text x={name + inner + VALUE + beside + 8} y={ROW - 6} text-anchor="end">
                  {fitted(notes[row] ?? "", beside - 4)}
                </text>
              )}
            </Mark>
          );
        })}
        {reached.length > 1 && (
          <polyline
            class="hta-cumulative"
            points={reached
              .map((share, row) => `${name + (inner * share) / 100},${row * ROW + ROW / 2}`)
              .join(" ")}
          />
        )}
      </Plot>
    </>
  );
}
