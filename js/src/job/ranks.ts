// The ranks of a job as the view's pictures read them: what is measured of each, and in which order they stand.

import { max, min } from "../charts/numbers";
import { decode, type EncodedTable } from "../columns";

export interface Rank {
  rank: number;
  label: string;
  /** NaN where unknown */
  stage: number;
  replica: number;
  tensor: number;
  context: number;
  node: number;
  culprit: boolean;
  cause: string;
  /** ns per step, by the name of the measure; NaN where unknown */
  values: Readonly<Record<string, number>>;
}

/** A smaller share of a step costs nothing: the ideal time, a mean, differs by as much. */
const LEAST_COST = 1e-4;

export interface Measure {
  name: string;
  label: string;
  /** of `analysis.job_ranks` */
  column: string;
  /** the class of time whose colour it has */
  hue: string;
  /** the scale begins at the least value, as nothing is usual here */
  contrast: boolean;
  title: string;
}

export const MEASURES: readonly Measure[] = [
  {
    name: "cost",
    label: "Cost",
    column: "cost_ns",
    hue: "communication",
    contrast: false,
    title:
      "What a step would gain if the rank’s operations took their ideal time, by replay; below 0 where it is " +
      "faster than that, for the ideal is a mean",
  },
  {
    name: "compute",
    label: "Compute",
    column: "compute_ns",
    hue: "compute",
    contrast: true,
    title: "Compute kernels run",
  },
  {
    name: "waiting",
    label: "Waiting",
    column: "waiting_ns",
    hue: "communication",
    contrast: false,
    title: "Waiting for other ranks in communication that computation does not hide",
  },
  {
    name: "caused",
    label: "Waits caused",
    column: "caused_ns",
    hue: "communication",
    contrast: false,
    title: "Waiting of other ranks that, followed from rank to rank, ends at this one; hidden or not",
  },
  {
    name: "idle",
    label: "Idle",
    column: "idle_ns",
    hue: "idle",
    contrast: true,
    title: "Nothing runs on the device",
  },
];

/** Along what a job may be split, with a word for a place there. */
const PLACES = [
  ["stage", "stage"],
  ["replica", "replica"],
  ["tensor", "tensor rank"],
  ["context", "context rank"],
] as const;

export function ranksOf(encoded: EncodedTable | null, labels: readonly string[]): Rank[] {
  const table = decode(encoded);
  const column = (name: string) => table.numbers(name);
  const [steps, times] = [column("iterations"), column("window_ns")];
  const [stage, replica, tensor, context, node, culprit] = [
    ...PLACES.map(([name]) => name),
    "node",
    "culprit",
  ].map(column);
  const causes = table.texts("cause");
  const columns = MEASURES.map((measure) => [measure, column(measure.column)] as const);
  return Array.from(column("rank"), (rank, row) => ({
    rank,
    label: labels[row] ?? String(rank),
    stage: stage?.[row] ?? Number.NaN,
    replica: replica?.[row] ?? Number.NaN,
    tensor: tensor?.[row] ?? Number.NaN,
    context: context?.[row] ?? Number.NaN,
    node: node?.[row] ?? Number.NaN,
    culprit: culprit?.[row] === 1,
    cause: causes[row] ?? "",
    values: Object.fromEntries(
      columns.map(([{ name }, values]) => {
        const value = values[row] ?? Number.NaN;
        const count = Math.max(1, steps[row] ?? 1);
        if (name !== "cost") return [name, value / count];
        const least = (LEAST_COST * (times[row] ?? 0)) / count;
        return [name, Math.abs(value) < least ? 0 : value];
      }),
    ),
  }));
}

/** Where a rank stands, in words; "" where nothing is known. */
export function roleOf(rank: Rank): string {
  const known = PLACES.filter(([name]) => !Number.isNaN(rank[name]));
  if (known.length > 0) return known.map(([name, word]) => `${word} ${rank[name]}`).join(", ");
  return Number.isNaN(rank.node) ? "" : `node ${rank.node}`;
}

export type Order = "place" | "measure";

/** By stage, replica and parts of these, by node, or by number; or the largest first. Of equals the lower number is first. */
export function ordered(ranks: readonly Rank[], order: Order, measure: string): Rank[] {
  const size = (rank: Rank) => rank.values[measure] ?? Number.NaN;
  const place = (a: Rank, b: Rank) => PLACES.reduce((found, [name]) => found || below(a[name], b[name]), 0);
  return [...ranks].sort(
    (a, b) => (order === "measure" ? below(size(b), size(a)) : place(a, b)) || a.rank - b.rank,
  );
}

/** The difference of two numbers; none if one is unknown. */
const below = (a: number, b: number) => a - b || 0;

/** From the least to the most that is drawn: what is between is shaded. */
export interface Shading {
  least: number;
  most: number;
  /** 0 to 1 */
  of(value: number): number;
}

/** With contrast, the scale spans at least this share of the least value: less is noise. */
const LEAST_SPAN = 0.1;
const FAINTEST = 0.06;

export function shading(values: Iterable<number>, contrast: boolean): Shading {
  const known = [...values].filter((value) => !Number.isNaN(value));
  const most = Math.max(0, max(known) || 0);
  const least = contrast ? Math.max(0, min(known) || 0) : 0;
  const span = Math.max(most, least * (1 + LEAST_SPAN)) - least || 1;
  return {
    least,
    most,
    of: (value) => FAINTEST + (1 - FAINTEST) * Math.min(1, Math.max(0, (value - least) / span)),
  };
}

/** A shade as a colour on the background, which is lighter or darker with the theme. */
export function tint(hue: string, share: number): string {
  return `color-mix(in srgb, var(--hta-${hue}) ${(100 * share).toFixed(1)}%, var(--hta-background))`;
}
