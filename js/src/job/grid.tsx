// Every rank as a cell, at its place in the job or by size.

import { type Signal, useSignal } from "@preact/signals";
import type { Scale as Unit } from "../charts/unit";
import { duration } from "../format";
import { Picker } from "../picker";
import { placed } from "./places";
import { MEASURES, type Measure, type Order, type Rank, roleOf, type Shading, tint } from "./ranks";

export interface GridProps {
  /** in display order */
  ranks: readonly Rank[];
  order: Order;
  measure: Measure;
  shades: Shading;
  unit: Unit;
  selected: Signal<number[]>;
  width: number;
}

const LABEL = 56; // px, with the gap

export function Grid({ ranks, order, measure, shades, unit, selected, width }: GridProps) {
  const places = placed(ranks, order, width - LABEL);
  const of = new Map(ranks.map((rank) => [rank.rank, rank]));
  const told = useSignal("");
  const describe = (number: number) => {
    const rank = of.get(number);
    return rank ? inWords(rank, measure, unit) : "";
  };
  const look = (number: number) => {
    const rank = of.get(number);
    const [row = 0, column = 0] = places.at.get(number) ?? [];
    const share = shades.of(rank?.values[measure.name] ?? Number.NaN);
    return {
      "data-rank": number,
      "data-culprit": rank?.culprit || undefined,
      style: {
        gridArea: `${row + 1} / ${column + 1}`,
        "--hta-job-shade": Number.isNaN(share) ? "transparent" : tint(measure.hue, share),
      },
    };
  };
  const follow = (event: Event) => {
    const cell = (event.target as Element).closest<HTMLElement>("[data-rank]");
    const rank = cell && of.get(Number(cell.dataset.rank));
    if (rank) told.value = sentenceOf(rank);
  };
  return (
    <div class="hta-job-ranks" onPointerOver={follow} onFocusIn={follow}>
      <div class="hta-job-field" data-named={places.named} style={{ "--hta-job-columns": places.columns }}>
        <div class="hta-job-lines" aria-hidden="true" hidden={places.lines.length === 0}>
          {places.lines.map((line) => (
            <span key={line.row} style={{ gridRow: `${line.row + 1} / span ${line.rows}` }}>
              {line.label}
            </span>
          ))}
        </div>
        <Picker
          label={`Ranks by ${measure.label.toLowerCase()}`}
          className="hta-job-grid"
          all={ranks.map((one) => one.rank)}
          selected={selected}
          describe={describe}
          look={look}
        >
          {(number) => (places.named ? of.get(number)?.label : null)}
        </Picker>
      </div>
      <Told told={told} />
    </div>
  );
}

/** The rank that is pointed at; by itself, so that a move draws nothing else anew. */
function Told({ told }: { told: Signal<string> }) {
  return (
    <p class="hta-job-told hta-muted" aria-hidden="true">
      {told.value || "Point at a rank for its numbers. Click to select it, Shift-click for a run of ranks."}
    </p>
  );
}

function who(rank: Rank): string {
  const about = [roleOf(rank), rank.culprit ? `culprit: ${rank.cause}` : ""].filter(Boolean).join(", ");
  return `Rank ${rank.label}${about ? ` (${about})` : ""}`;
}

function inWords(rank: Rank, measure: Measure, unit: Unit): string {
  const value = rank.values[measure.name] ?? Number.NaN;
  return `${who(rank)}: ${Number.isNaN(value) ? "unknown" : unit.text(value)} ${measure.label.toLowerCase()} per step`;
}

/** All that is measured of a rank. */
function sentenceOf(rank: Rank): string {
  const told = MEASURES.flatMap(({ name, label }) => {
    const value = rank.values[name] ?? Number.NaN;
    return Number.isNaN(value) ? [] : [`${label.toLowerCase()} ${duration(value)}`];
  });
  return `${who(rank)}, per step: ${told.join(" · ")}`;
}
