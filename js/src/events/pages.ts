// The rows that the kernel has sent, page by page. Few requests are in flight at a time, those nearest to the viewport
// first: a fast scroll fetches the rows it ends on, not all that it passes.

import type { Table } from "../columns";

export const PAGE_ROWS = 128;
const KEPT = 64;
const IN_FLIGHT = 2;

export type FetchPage = (first: number, count: number, signal: AbortSignal) => Promise<Table>;

/** A row of the list: a row of a page's table. */
export interface Row {
  table: Table;
  at: number;
}

export class Pages {
  #pages = new Map<number, Table>();
  /** what was shown before `reset`, until the first new page is there: no flicker when the order changes */
  #before = new Map<number, Table>();
  #inFlight = new Set<number>();
  #wanted: number[] = [];
  #current = new AbortController();

  constructor(
    private readonly fetchPage: FetchPage,
    private readonly changed: () => void,
    private readonly failed: (error: unknown) => void,
  ) {}

  /** The list is another now: forget its rows, and what is on its way. */
  reset(): void {
    this.#current.abort();
    this.#current = new AbortController();
    if (this.#pages.size) this.#before = this.#pages;
    this.#pages = new Map();
    this.#inFlight.clear();
    this.#wanted = [];
  }

  row(index: number): Row | undefined {
    const page = Math.floor(index / PAGE_ROWS);
    const table = this.#pages.get(page) ?? this.#before.get(page);
    const at = index % PAGE_ROWS;
    return table && at < table.rows ? { table, at } : undefined;
  }

  /** These rows are in sight: fetch them, then their neighbours. */
  want(first: number, last: number, rows: number): void {
    if (last <= first) return;
    const [a, b] = [Math.floor(first / PAGE_ROWS), Math.floor((last - 1) / PAGE_ROWS)];
    const pages = Array.from({ length: b - a + 1 }, (_, i) => a + i);
    const end = Math.ceil(rows / PAGE_ROWS);
    this.#wanted = [...pages, b + 1, a - 1].filter((page) => page >= 0 && page < end);
    for (const page of this.#wanted) this.#touch(page);
    this.#pump();
  }

  close(): void {
    this.#current.abort();
  }

  #pump(): void {
    for (const page of this.#wanted) {
      if (this.#inFlight.size >= IN_FLIGHT) return;
      if (!this.#pages.has(page) && !this.#inFlight.has(page)) void this.#fetch(page);
    }
  }

  async #fetch(page: number): Promise<void> {
    const { signal } = this.#current;
    this.#inFlight.add(page);
    try {
      const table = await this.fetchPage(page * PAGE_ROWS, PAGE_ROWS, signal);
      if (signal.aborted) return;
      this.#inFlight.delete(page);
      this.#before.clear();
      this.#pages.set(page, table);
      for (const old of [...this.#pages.keys()].slice(0, -KEPT)) this.#pages.delete(old);
      this.changed();
      this.#pump();
    } catch (error) {
      if (signal.aborted) return;
      this.#inFlight.delete(page);
      this.failed(error);
    }
  }

  /** The pages in sight are the last to be dropped. */
  #touch(page: number): void {
    const table = this.#pages.get(page);
    if (table && this.#pages.delete(page)) this.#pages.set(page, table);
  }
}
