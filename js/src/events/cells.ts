// How the columns of events print: identifiers plain, times in µs with every nanosecond, so that digits align.

import { columnFormat, exact, fixed } from "../format";

/** A column that the trace has (hta_widgets/widgets/event_columns.py). */
export interface ColumnInfo {
  name: string;
  title: string;
  type: "text" | "number";
}

export interface EventColumn extends ColumnInfo {
  heading: string;
  unit: string;
  width: string;
  /** how many of the stored unit make one of the unit shown, and whether they are whole numbers */
  scale: number;
  whole: boolean;
  cell(value: number | string | undefined): string;
  tip(value: number | string | undefined): string;
}

const HEADINGS: Record<string, string> = {
  event_class: "class",
  track: "stream / thread",
  dur_ns: "duration",
};
const WIDTHS: Record<string, string> = {
  rank: "56px",
  name: "minmax(200px, 1fr)",
  event_class: "120px",
  track: "144px",
  start_ns: "128px",
  end_ns: "128px",
  dur_ns: "112px",
  iteration: "80px",
  correlation: "96px",
};
/** Sorting by these starts with the largest. */
const LARGEST_FIRST = /^(dur_ns|.*bytes|.*_pct|.*_gbps|.*nelems)$/;

/** Classes that share a colour; the others have their own. */
const COLOURS: Record<string, string> = { memory_copy: "memory", memory_set: "memory", host_op: "host" };

export function classColour(eventClass: string): string {
  return `var(--hta-${COLOURS[eventClass] ?? eventClass}, var(--hta-idle))`;
}

export function eventColumn(info: ColumnInfo): EventColumn {
  const { name, type } = info;
  const width = WIDTHS[name] ?? (type === "text" ? "160px" : "112px");
  if (type === "text") {
    const cell = (value: number | string | undefined) => String(value ?? "");
    const shown =
      name === "event_class"
        ? (value: number | string | undefined) => cell(value).replaceAll("_", " ")
        : cell;
    return {
      ...info,
      width,
      unit: "",
      scale: 1,
      whole: true,
      heading: heading(name),
      cell: shown,
      tip: cell,
    };
  }
  if (name.endsWith("_ns")) {
    return {
      ...info,
      width,
      unit: "µs",
      scale: 1000,
      whole: true,
      heading: heading(name),
      cell: number((value) => fixed(value / 1000, 3)),
      tip: number((value) => exact(value, "ns")),
    };
  }
  const format = columnFormat(name, []);
  const plain = format.unit === "" ? String : format.cell;
  return {
    ...info,
    width,
    unit: format.unit,
    scale: 1,
    whole: !/_(gbps|pct)$/.test(name),
    heading: HEADINGS[name] ?? format.heading,
    cell: number(plain),
    tip: number(format.unit === "" ? String : format.title),
  };
}

/** What a click on a heading sorts by: first up or down, then the other way, then not at all. */
export function nextSort(sort: string, name: string): string {
  const [first, second] = LARGEST_FIRST.test(name) ? [`-${name}`, name] : [name, `-${name}`];
  if (sort === first) return second;
  return sort === second ? "" : first;
}

export function ariaSort(sort: string, name: string): "ascending" | "descending" | "none" {
  if (sort === name) return "ascending";
  return sort === `-${name}` ? "descending" : "none";
}

function heading(name: string): string {
  return HEADINGS[name] ?? name.replace(/_ns$/, "").replaceAll("_", " ");
}

/** Numbers too large for the browser come as text; a missing one leaves its cell empty. */
function number(format: (value: number) => string) {
  return (value: number | string | undefined) => {
    if (typeof value === "string") return value;
    return value === undefined || Number.isNaN(value) ? "" : format(value);
  };
}
