// Who waits for whom: a row for each rank that waits, a column for each rank that the others wait for.

import { batch, type Signal } from "@preact/signals";
import { unitOf } from "../charts/unit";
import { type Bin, type Cell, cellOf } from "./bins";
import { Matrix, type Shown } from "./matrix";
import { picked, samePick } from "./picking";
import { shading } from "./ranks";
import { Scale } from "./scale";
import { type Pairs, UNKNOWN } from "./sent";
import { nameOf } from "./time";

const MOST_COLUMNS = 16;
const HUE = "communication";

interface Column {
  key: string;
  label: string;
  /** whom the others wait for; UNKNOWN among them where that is not known */
  awaited: readonly number[];
}

export interface WaitsProps {
  pairs: Pairs;
  bins: readonly Bin[];
  label(rank: number): string;
  ranks: Signal<number[]>;
  all: readonly number[];
  zoom(bin: Bin): (() => void) | null;
  width: number;
}

export function Waits({ pairs, bins, label, ranks, all, zoom, width }: WaitsProps) {
  const columns = columnsOf(pairs, label);
  const found = bins.map((bin) =>
    columns.map(({ awaited }) => {
      const cell = cellOf(bin.ranks, (rank) => {
        const own = pairs.waits.get(rank);
        const sums = awaited.flatMap((of) => own?.get(of) ?? []);
        return sums.length ? sums.reduce((a, b) => a + b) / pairs.steps : Number.NaN;
      });
      // of all ranks of the row: those that do not wait count, too
      return (
        cell && { ...cell, sum: cell.mean * cell.count, mean: (cell.mean * cell.count) / bin.ranks.length }
      );
    }),
  );
  const known = found.flat().flatMap((cell) => (cell ? [cell.mean, cell.most] : []));
  const shades = shading(known, false);
  const unit = unitOf("ns", known);
  const cell = (row: number, column: number): Shown | null => {
    const [own, bin, of] = [found[row]?.[column], bins[row], columns[column]];
    if (!own || !bin || !of) return null;
    return { value: own.mean, most: own.most, text: inWords(own, bin, of, label) };
  };
  const inArea = (rows: readonly Bin[], of: readonly Column[]) =>
    picked(
      [
        ...rows.flatMap((bin) => bin.ranks),
        ...of.flatMap(({ awaited }) => awaited.filter((one) => one >= 0)),
      ],
      all,
    );
  return (
    <section class="hta-job-part" aria-label="Who waits for whom">
      <div class="hta-bar">
        <h4>Who waits for whom</h4>
        <span class="hta-grow" />
        {columns.length > 0 && (
          <>
            <span class="hta-muted hta-job-small">per rank and step</span>
            <Scale hue={HUE} {...{ shades, unit }} />
          </>
        )}
      </div>
      {columns.length ? (
        <Matrix
          label="Waiting by rank that waits and rank that is awaited"
          axis="the rank that they wait for, directly or through others"
          rows={bins}
          columns={columns}
          hue={HUE}
          hint="Each row waits for the ranks below its cells. Drag over cells to select both sides."
          {...{ cell, shades, width }}
          pressed={(row, column) => {
            const [bin, of] = [bins[row], columns[column]];
            const own = bin && of && !of.awaited.includes(UNKNOWN) ? inArea([bin], [of]) : [];
            return own.length > 0 && own.every((rank) => ranks.value.includes(rank));
          }}
          pick={({ rows, columns: of }) => {
            const some = inArea(bins.slice(rows[0], rows[1] + 1), columns.slice(of[0], of[1] + 1));
            batch(() => {
              ranks.value = samePick(ranks.value, some) ? [] : some;
            });
          }}
          zoom={(row) => (bins[row] ? zoom(bins[row]) : null)}
        />
      ) : (
        <p class="hta-muted hta-job-none">No rank waits noticeably for another in the selected iterations.</p>
      )}
    </section>
  );
}

/** Those that cause most waiting by themselves, then all others together, then what is not known. */
function columnsOf(pairs: Pairs, label: (rank: number) => string): Column[] {
  const known = [...pairs.caused.entries()].filter(([rank]) => rank !== UNKNOWN);
  const worst = known.sort(([a, most], [b, other]) => other - most || a - b).map(([rank]) => rank);
  const few = worst.length > MOST_COLUMNS ? worst.slice(0, MOST_COLUMNS - 1) : worst;
  const rest = worst.slice(few.length);
  const name = (rank: number) => {
    const members = pairs.members(rank);
    return members.length > 1 ? `${label(rank)}–${label(members.at(-1) as number)}` : label(rank);
  };
  return [
    ...few.map((rank) => ({ key: `${rank}`, label: name(rank), awaited: [rank] })),
    ...(rest.length ? [{ key: "rest", label: "others", awaited: rest }] : []),
    ...(pairs.caused.has(UNKNOWN) ? [{ key: "unknown", label: "unknown", awaited: [UNKNOWN] }] : []),
  ];
}

function inWords(
  own: Cell & { sum: number },
  bin: Bin,
  { key, label: column, awaited }: Column,
  label: (rank: number) => string,
): string {
  const whom =
    key === "rest"
      ? `${awaited.length} others`
      : key === "unknown"
        ? "ranks that are not known"
        : `rank ${column}`;
  const [sum, most] = [own.sum, own.most].map((ns) => unitOf("ns", [ns]).text(ns));
  if (bin.ranks.length === 1) return `Rank ${bin.label} waits ${sum} per step for ${whom}`;
  const waiting = `${own.count} of ${nameOf(bin)}`;
  return `${waiting} wait ${sum} per step for ${whom}, at most ${most} (rank ${label(own.who)})`;
}
