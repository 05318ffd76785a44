// Rank by iteration: what each does in it.

import { batch, type Signal, useSignal } from "@preact/signals";
import type { Scale as Unit } from "../charts/unit";
import { unitOf } from "../charts/unit";
import { type Bin, cellOf } from "./bins";
import { type Area, Matrix, type Shown } from "./matrix";
import { picked, samePick } from "./picking";
import { shading } from "./ranks";
import { Choices, Scale } from "./scale";
import type { Cells } from "./sent";

interface Part {
  name: string;
  label: string;
  title: string;
  hue: string;
  contrast: boolean;
}

const PARTS: readonly Part[] = [
  {
    name: "compute_ns",
    label: "Compute",
    title: "Compute kernels run",
    hue: "compute",
    contrast: true,
  },
  {
    name: "waiting_ns",
    label: "Waiting",
    title: "Waiting for other ranks in communication that computation does not hide",
    hue: "communication",
    contrast: false,
  },
  {
    name: "transferring_ns",
    label: "Transfer",
    title: "Communication without waiting, and copies, that computation does not hide",
    hue: "memory",
    contrast: false,
  },
  { name: "idle_ns", label: "Idle", title: "Nothing runs on the device", hue: "idle", contrast: true },
];

export interface TimeProps {
  cells: Cells;
  bins: readonly Bin[];
  label(rank: number): string;
  ranks: Signal<number[]>;
  iterations: Signal<number[]>;
  zoom(bin: Bin): (() => void) | null;
  width: number;
}

export function Time({ cells, bins, label, ranks, iterations, zoom, width }: TimeProps) {
  const chosen = useSignal("compute_ns");
  const part = PARTS.find(({ name }) => name === chosen.value) ?? (PARTS[0] as Part);
  const { columns } = cells.layout;
  const heads = columns.map((of) => ({
    key: `${of[0]}`,
    label: of.length > 1 ? `${of[0]}–${of.at(-1)}` : `${of[0]}`,
  }));
  const [some, times] = [new Set(ranks.value), new Set(iterations.value)];
  const found = bins.map((bin) =>
    heads.map((_, column) => cellOf(bin.ranks, (rank) => cells.value(part.name, rank, column))),
  );
  const known = found.flat().flatMap((cell) => (cell ? [cell.mean, cell.most] : []));
  const shades = shading(known, part.contrast);
  const unit = unitOf("ns", known);
  const cell = (row: number, column: number): Shown | null => {
    const [own, bin, head] = [found[row]?.[column], bins[row], heads[column]];
    if (!own || !bin || !head) return null;
    const place = `${nameOf(bin)}, iteration ${head.label}`;
    const text = `${place}: ${amounts(own, label, unit)} ${part.label.toLowerCase()}`;
    return { value: own.mean, most: own.most, text };
  };
  const areaOf = ({ rows, columns: of }: Area) => ({
    ranks: bins.slice(rows[0], rows[1] + 1).flatMap((bin) => bin.ranks),
    iterations: columns.slice(of[0], of[1] + 1).flat(),
  });
  return (
    <section class="hta-job-part" aria-label="Rank by iteration">
      <div class="hta-bar">
        <h4>Rank by iteration</h4>
        <Choices
          label="Shown of iterations"
          choices={PARTS}
          chosen={part.name}
          choose={(name) => {
            chosen.value = name;
          }}
        />
        <span class="hta-grow" />
        <Scale hue={part.hue} {...{ shades, unit }} />
      </div>
      <Matrix
        label={`${part.label} by rank and iteration`}
        axis="iteration"
        rows={bins}
        columns={heads}
        hue={part.hue}
        hint="Drag over cells to select ranks and iterations."
        {...{ cell, shades, width }}
        pressed={(row, column) =>
          some.size + times.size > 0 &&
          isIn(some, bins[row]?.ranks ?? []) &&
          isIn(times, columns[column] ?? [])
        }
        pick={(area) => {
          const own = areaOf(area);
          const [of, during] = [
            picked(own.ranks, cells.layout.ranks),
            picked(own.iterations, columns.flat()),
          ];
          const again = samePick(ranks.value, of) && samePick(iterations.value, during);
          batch(() => {
            ranks.value = again ? [] : of;
            iterations.value = again ? [] : during;
          });
        }}
        zoom={(row) => (bins[row] ? zoom(bins[row]) : null)}
      />
    </section>
  );
}

/** Whether all of the values are selected; where nothing is, everything is. */
const isIn = (selected: ReadonlySet<number>, values: readonly number[]) =>
  selected.size === 0 || values.every((value) => selected.has(value));

/** A row in words: `rank 3` or `ranks 32–63`. */
export function nameOf({ ranks, label }: Bin): string {
  return ranks.length > 1 ? `${ranks.length} ranks ${label}` : `rank ${label}`;
}

function amounts(
  cell: { mean: number; most: number; who: number; count: number },
  label: (rank: number) => string,
  unit: Unit,
): string {
  if (cell.count === 1) return unit.text(cell.mean);
  return `${unit.text(cell.mean)} on average, at most ${unit.text(cell.most)} (rank ${label(cell.who)})`;
}
