// The lines of a comparison: search, filter, sort and choose. The kernel does the work.

import type { Signal } from "@preact/signals";
import { Button } from "./button";
import type { Table } from "./columns";
import { type Model, trait } from "./model";
import { SearchBox } from "./search";
import type { Choosing, Sort } from "./table";

type Line = [kind: string, line: string];

export interface Lines {
  search: Signal<string>;
  sort: Signal<Sort>;
  onlySignificant: Signal<boolean>;
  /** the chosen one */
  line: Signal<Line | null>;
}

/** The traits of a panel that has lines; null for any other. */
export function linesOf(model: Model, signal: AbortSignal): Lines | null {
  if (typeof model.get("search") !== "string") return null;
  return {
    search: trait<string>(model, "search", signal),
    sort: trait<Sort>(model, "sort", signal),
    onlySignificant: trait<boolean>(model, "only_significant", signal),
    line: trait<Line | null>(model, "line", signal),
  };
}

/** Whether lines are left out. */
export function narrows({ search, onlySignificant }: Lines): boolean {
  return search.value !== "" || onlySignificant.value;
}

export function LineBar({ lines, signal }: { lines: Lines; signal: AbortSignal }) {
  const { search, onlySignificant, line } = lines;
  return (
    <div class="hta-bar hta-lines">
      <SearchBox query={search} label="Search lines" signal={signal} />
      <Button
        aria-pressed={onlySignificant.value}
        title="Leave out changes that are not significant"
        onClick={() => {
          onlySignificant.value = !onlySignificant.value;
        }}
      >
        Only significant
      </Button>
      {line.value && <Button onClick={() => choose(lines, null)}>Clear choice</Button>}
    </div>
  );
}

/** What the table of the lines does when it is clicked. */
export function orderAndChoice(lines: Lines, table: Table) {
  const [kinds, names] = [table.texts("kind"), table.texts("line")];
  const chosen = (row: number) => same(lines.line.value, [kinds[row] ?? "", names[row] ?? ""]);
  const choosing: Choosing = {
    chosen,
    choose: (row) => choose(lines, chosen(row) ? null : [kinds[row] ?? "", names[row] ?? ""]),
  };
  return {
    sort: lines.sort.value,
    onSort: (sort: Sort) => {
      lines.sort.value = sort;
    },
    choosing,
  };
}

function choose(lines: Lines, line: Line | null): void {
  lines.line.value = line;
}

function same(a: Line | null, b: Line): boolean {
  return a?.[0] === b[0] && a[1] === b[1];
}
