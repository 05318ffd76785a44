// The filter of a column, by a text or by a range, over a small picture of what its values are like.

import { useEffect, useRef, useState } from "preact/hooks";
import { counted, grouped } from "./format";
import { consume } from "./page";

/** A text that values hold, or the least and the greatest value. */
export type Filter = string | [low: number | null, high: number | null];

/** As hta_widgets/widgets/column_filters.py has it. */
export interface Distribution {
  missing: number;
  /** of numbers */
  edges?: number[];
  counts?: number[];
  /** of texts the commonest ones, and how many there are */
  values?: [text: string, count: number][];
  distinct?: number;
}

export interface ColumnFilterProps {
  heading: string;
  numeric: boolean;
  /** stored as whole numbers */
  whole: boolean;
  /** how many of the stored unit make one of the unit shown */
  scale: number;
  filter: Filter | undefined;
  distribution: Distribution | undefined;
  /** a number of the column in words */
  told(value: number): string;
  change(filter: Filter | undefined): void;
}

const TYPING_MS = 250;
const HEIGHT = 20;
const NUMBER = "([-+]?[0-9][0-9,]*(?:\\.[0-9]*)?(?:e[-+]?[0-9]+)?)";
const RANGE = new RegExp(`^${NUMBER}\\s*(?:\\.\\.+|to|–)\\s*${NUMBER}$`, "i");
const LIMIT = new RegExp(`^(>=?|≥|<=?|≤|=)?\\s*${NUMBER}$`, "i");

/** "10 to 20", "> 10", "<= 20", "7"; undefined: none of these. */
export function rangeOf(
  text: string,
  scale: number,
  whole: boolean,
): [number | null, number | null] | undefined {
  const value = (digits: string | undefined) => stored(Number((digits ?? "").replaceAll(",", "")) * scale);
  const range = RANGE.exec(text.trim());
  if (range) return [value(range[1]), value(range[2])];
  const limit = LIMIT.exec(text.trim());
  if (!limit) return undefined;
  const at = value(limit[2]);
  switch (limit[1]) {
    case ">":
      return [beyond(at, 1, whole), null];
    case "<":
      return [null, beyond(at, -1, whole)];
    case ">=":
    case "≥":
      return [at, null];
    case "<=":
    case "≤":
      return [null, at];
    default:
      return [at, at];
  }
}

/** What was typed comes back as it would be typed. */
export function textOf(filter: Filter | undefined, scale: number): string {
  if (filter === undefined || typeof filter === "string") return filter ?? "";
  const [low, high] = filter.map((end) => (end === null ? "" : String(stored(end / scale))));
  if (low === high) return low ?? "";
  return low && high ? `${low} to ${high}` : low ? `>= ${low}` : `<= ${high}`;
}

/** Without the traces of a multiplication by a power of ten: 1.1 µs are 1,100 ns. */
function stored(value: number): number {
  return Number(value.toPrecision(15));
}

/** The nearest value beyond. */
function beyond(value: number, step: 1 | -1, whole: boolean): number {
  return value + step * (whole ? 1 : Math.abs(value) * Number.EPSILON);
}

export function ColumnFilter(props: ColumnFilterProps) {
  const { heading, numeric, whole, scale, filter, distribution, change } = props;
  const known = textOf(filter, scale);
  const [typed, setTyped] = useState(known);
  const read = (text: string) => parsed(text, numeric, scale, whole);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    if (known !== textOf(read(typed) ?? undefined, scale)) setTyped(known); // changed elsewhere
  }, [known]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const wrong = read(typed) === undefined;
  const settle = (text: string) => {
    clearTimeout(timer.current);
    const found = read(text);
    if (found !== undefined) change(found ?? undefined);
  };
  const hint = numeric
    ? "a range: 10 to 20, > 10, <= 20, or a number"
    : "text that it holds, whatever the case";
  return (
    <span class="hta-column-filter" title={`${hint}\n${described(props)}`}>
      <Picture distribution={distribution} />
      <input
        type="text"
        spellcheck={false}
        aria-label={`Filter ${heading}`}
        aria-invalid={wrong}
        placeholder={numeric ? "range" : "text"}
        value={typed}
        onInput={(event) => {
          const text = event.currentTarget.value;
          setTyped(text);
          clearTimeout(timer.current);
          timer.current = setTimeout(() => settle(text), TYPING_MS);
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter") settle(typed);
          else if (event.key === "Escape" && typed) {
            setTyped("");
            settle("");
            consume(event);
          }
          event.stopPropagation(); // keys of the table
        }}
      />
    </span>
  );
}

const BINS = 24;
const COMMONEST = 12;

/** What the values of a column of a table that is here are like. */
export function distributionOf(values: ArrayLike<number | string>): Distribution {
  const all = Array.from(values);
  if (typeof all[0] === "string") {
    const counts = new Map<string, number>();
    for (const text of all as string[]) counts.set(text, (counts.get(text) ?? 0) + 1);
    const commonest = [...counts].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
    return { values: commonest.slice(0, COMMONEST), distinct: counts.size, missing: 0 };
  }
  const known = (all as number[]).filter(Number.isFinite);
  const missing = all.length - known.length;
  if (known.length === 0) return { edges: [], counts: [], missing };
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const counts = new Array<number>(low === high ? 1 : BINS).fill(0);
  for (const value of known) {
    const bin = low === high ? 0 : Math.min(Math.floor((BINS * (value - low)) / (high - low)), BINS - 1);
    counts[bin] = (counts[bin] as number) + 1;
  }
  const edges = counts.map((_, bin) => low + ((high - low) * bin) / counts.length);
  return { edges: [...edges, high], counts, missing };
}

/** The filter; null: none; undefined: it cannot be read. */
function parsed(text: string, numeric: boolean, scale: number, whole: boolean): Filter | null | undefined {
  if (!text.trim()) return null;
  return numeric ? rangeOf(text, scale, whole) : text;
}

/** In words, for tooltips. */
function described({ distribution, told, heading }: ColumnFilterProps): string {
  if (!distribution) return heading;
  const { edges, counts, values, distinct, missing } = distribution;
  const without = missing ? `\n${grouped(missing)} without a value` : "";
  if (values) {
    const lines = values.slice(0, 5).map(([text, count]) => `${grouped(count)} × ${text || "(empty)"}`);
    return `${counted(distinct ?? 0, "value")}:\n${lines.join("\n")}${without}`;
  }
  const [least, most] = [edges?.[0], edges?.at(-1)];
  if (least === undefined || most === undefined) return `no value${without}`;
  const total = (counts ?? []).reduce((sum, count) => sum + count, 0);
  return `${grouped(total)} from ${told(least)} to ${told(most)}${without}`;
}

/** Bars of the counts in each bin, or of the commonest texts. */
function Picture({ distribution }: { distribution: Distribution | undefined }) {
  const counts = distribution?.values?.map(([, count]) => count) ?? distribution?.counts ?? [];
  if (counts.length === 0) return null;
  const most = Math.max(...counts, 1);
  return (
    <svg viewBox={`0 0 ${counts.length} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      {counts.map((count, bin) => {
        const height = count ? Math.max((HEIGHT * count) / most, 1) : 0;
        return <rect key={bin} x={bin + 0.1} y={HEIGHT - height} width={0.8} height={height} />;
      })}
    </svg>
  );
}
