// The rows of a roofline chart as a list, most time above the roof first; a row chooses as its mark does.

import { type Column, Table } from "../columns";
import { DataTable } from "../table";
import { fittedNames } from "./mark";

const NAME = 190; // px

export interface RoofListProps {
  marks: Table;
  chosen: ReadonlySet<string>;
  pick(label: string): void;
}

/** What the list calls the columns of the marks. */
const NUMBERS: [name: string, shown: string][] = [
  ["headroom", "headroom_ns"],
  ["size", "time_ns"],
  ["share", "share_pct"],
  ["calls", "calls"],
  ["y", "tflops_s"],
  ["moved", "gb_s"],
  ["efficiency", "of_roof_pct"],
];

/** What the details of all rows say, such as that each is of two ranks; "" where they differ. */
export function sharedDetail(details: readonly string[]): string {
  const [first = "", ...others] = details;
  return others.length > 0 && others.every((detail) => detail === first) ? first : "";
}

export function RoofList({ marks, chosen, pick }: RoofListProps) {
  const labels = marks.texts("label");
  const fitting = fittedNames(marks.texts("short"), NAME);
  const text = (name: string, values: string[], short = {}): Column => ({
    name,
    kind: "text",
    values,
    short,
  });
  const details = marks.texts("detail");
  const columns = [
    text("name", labels, Object.fromEntries(labels.map((label, row) => [label, fitting[row] ?? label]))),
    ...(details.some(Boolean) && !sharedDetail(details) ? [text("detail", details)] : []),
    ...NUMBERS.map(([name, shown]): Column => ({ name: shown, kind: "float", values: marks.numbers(name) })),
    text("bound", marks.texts("bound")),
  ];
  const choosing = {
    chosen: (row: number) => chosen.has(labels[row] ?? ""),
    choose: (row: number) => pick(labels[row] ?? ""),
  };
  return (
    <div class="hta-roof-list">
      <DataTable table={new Table(labels.length, columns)} caption="Most headroom first" {...{ choosing }} />
    </div>
  );
}
