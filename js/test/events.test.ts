import { afterAll, afterEach, beforeAll, expect, it } from "vitest";
import { decode, type Table } from "../src/columns";
import { eventColumn, nextSort } from "../src/events/cells";
import { moveOf } from "../src/events/keys";
import { PAGE_ROWS, Pages } from "../src/events/pages";
import type { FrozenModel } from "../src/host";
import { drawn, show, wire } from "./support";

afterEach(() => document.body.replaceChildren());

// jsdom lays nothing out: a viewport of a heading and ten rows
beforeAll(() => {
  Object.defineProperty(HTMLElement.prototype, "clientHeight", { configurable: true, get: () => 264 });
});
afterAll(() => {
  Reflect.deleteProperty(HTMLElement.prototype, "clientHeight"); // other files share the page
});

const ROWS = 5000;
const state = {
  _view: "events",
  rows: ROWS,
  total: 10_000,
  version: 1,
  sort: "",
  columns: ["rank", "name", "dur_ns", "correlation"],
  available_columns: [
    { name: "rank", title: "rank", type: "number" },
    { name: "name", title: "name", type: "text" },
    { name: "dur_ns", title: "duration", type: "number" },
    { name: "correlation", title: "ties", type: "number" },
    { name: "category", title: "category in the trace", type: "text" },
  ],
  names: [],
  query: "",
  focus: null,
  height: 264,
  expression: "explorer.events",
};

/** Rows first to last as the kernel would send them: event 7 is called "op 7". */
function page(first: number, count: number) {
  const ids = Array.from({ length: Math.max(0, Math.min(count, ROWS - first)) }, (_, i) => first + i);
  const rows = wire({
    rank: ids.map((id) => id % 4),
    event_id: ids,
    name: ids.map((id) => `op ${id}`),
    event_class: ids.map(() => "compute"),
    dur_ns: ids.map((id) => 1000 * id + 1),
    correlation: ids.map((id) => (id % 2 ? Number.NaN : id)),
    category: ids.map(() => "kernel"),
  });
  for (const column of rows.columns) if (column.name === "name") column.short = { "op 4": "four" };
  return rows;
}

interface Call {
  call: string;
  method: string;
  params: {
    first: number;
    count: number;
    columns: string[];
    event_id: number;
    format: string;
    chunk: number;
  };
}

/** A kernel for the model; returns the calls it got. */
function answer(model: FrozenModel): Call[] {
  const calls: Call[] = [];
  const reply = (question: Call) => {
    calls.push(question);
    const { call, method, params } = question;
    const send = (result: object, buffers: DataView[] = []) =>
      model.emit("msg:custom", { rpc: 1, call, result }, buffers);
    if (method === "page") {
      const { data, ...head } = page(params.first, params.count);
      send({ ...head, version: model.get("version") }, data ? [data] : []);
    }
    if (method === "find") send({ row: params.event_id, version: model.get("version") });
  };
  // calls made while the view was built
  for (const { content } of model.sent) reply(content as Call);
  model.on("test:sent", (content: Call) => queueMicrotask(() => reply(content)));
  return calls;
}

async function table(changes: object = {}) {
  const shown = await show({ ...state, ...changes });
  const calls = answer(shown.model);
  await drawn();
  const grid = shown.el.querySelector<HTMLElement>(".hta-events-grid") as HTMLElement;
  return { ...shown, calls, grid };
}

const rowsOf = (el: Element) => [...el.querySelectorAll<HTMLElement>(".hta-events-row")];
const cells = (row: Element | undefined) => [...(row?.children ?? [])].map((cell) => cell.textContent);
const key = (target: Element, name: string) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true }));

it("draws the rows in sight of as many as there are", async () => {
  const { el, grid } = await table();
  expect(rowsOf(el)).toHaveLength(10);
  expect(grid.getAttribute("aria-rowcount")).toBe(String(ROWS + 1));
  expect(cells(rowsOf(el)[2])).toEqual(["2", "op 2only", "2.001", "2"]);
  expect(rowsOf(el)[2]?.children[1]?.getAttribute("title")).toBe("op 2");
  expect(cells(rowsOf(el)[4])[1]).toBe("fouronly");
  expect(rowsOf(el)[4]?.children[1]?.getAttribute("title")).toBe("op 4");
  expect(rowsOf(el)[3]?.children[2]?.getAttribute("title")).toBe("3,001 ns");
  expect(cells(rowsOf(el)[3])[3]).toBe("");
  expect(rowsOf(el)[9]?.getAttribute("aria-rowindex")).toBe("11");
  expect(el.textContent).toContain("5,000 of 10,000 events");
  expect([...el.querySelectorAll("[role=columnheader]")].map((head) => head.textContent)).toContain(
    "duration µs",
  );
});

it("asks for the rows that it is scrolled to, and shows dots until they are there", async () => {
  const { el, grid, calls } = await table();
  grid.scrollTop = 24 * 2000;
  grid.dispatchEvent(new Event("scroll"));
  await Promise.resolve();
  await drawn();
  expect(cells(rowsOf(el)[0])[1]).toBe("op 2000only");
  const pages = calls.map((call) => call.params.first / PAGE_ROWS);
  expect(new Set(pages)).toEqual(new Set([0, 1, 15, 16, 14]));
});

it("sorts by a heading, and starts over with each answer", async () => {
  const { el, model, calls, grid } = await table();
  const head = () => [...el.querySelectorAll<HTMLElement>("[role=columnheader]")][2] as HTMLElement;
  head().querySelector("button")?.click();
  expect(model.get("sort")).toBe("-dur_ns");
  await drawn();
  expect(head().getAttribute("aria-sort")).toBe("descending");
  grid.scrollTop = 4800;
  const before = calls.length;
  model.set("version", 2);
  await drawn();
  expect(grid.scrollTop).toBe(0);
  expect(calls.slice(before).map((call) => call.params.first)).toContain(0);
});

it("focuses the event that is clicked, or chosen by keyboard", async () => {
  const { el, model, grid, calls } = await table();
  rowsOf(el)[5]?.click();
  expect(model.get("focus")).toEqual([1, 5]);
  await drawn();
  expect(rowsOf(el)[5]?.getAttribute("aria-selected")).toBe("true");
  expect(calls.some((call) => call.method === "find")).toBe(false);
  key(grid, "ArrowDown");
  key(grid, "PageDown");
  await drawn();
  expect(document.getElementById(grid.getAttribute("aria-activedescendant") ?? "")?.textContent).toContain(
    "op 16",
  );
  key(grid, "Enter");
  expect(model.get("focus")).toEqual([0, 16]);
  key(grid, "End");
  await drawn();
  expect(cells(rowsOf(el).at(-1))[1]).toBe("op 4999only");
  key(grid, "Escape");
  expect(model.get("focus")).toBe(null);
});

it("comes to the event that is focused elsewhere", async () => {
  const { el, model, grid } = await table();
  model.set("focus", [0, 3000]);
  await drawn();
  await drawn();
  expect(grid.scrollTop).toBe(3000 * 24 - 108);
  const selected = el.querySelector("[aria-selected=true]");
  expect(selected?.getAttribute("aria-rowindex")).toBe("3002");
});

it("chooses names by their button or by key", async () => {
  const { el, model, grid } = await table();
  rowsOf(el)[1]?.querySelector("button")?.click();
  expect([model.get("names"), model.get("focus")]).toEqual([["op 1"], null]);
  key(grid, "ArrowDown");
  key(grid, "f");
  expect(model.get("names")).toEqual([]);
  model.set("names", ["op 3"]);
  await drawn();
  expect(rowsOf(el)[3]?.querySelector("button")?.getAttribute("aria-pressed")).toBe("true");
  const all = [...el.querySelectorAll("button")].find((button) => button.textContent?.startsWith("1 name"));
  all?.click();
  expect(model.get("names")).toEqual([]);
});

it("shows the columns that are chosen, in their order", async () => {
  const { el, model, calls } = await table();
  const boxes = [...el.querySelectorAll<HTMLInputElement>("input[type=checkbox]")];
  boxes.at(-1)?.click();
  expect(model.get("columns")).toEqual([...state.columns, "category"]);
  boxes[2]?.click();
  expect(model.get("columns")).toEqual(["rank", "name", "correlation", "category"]);
  await drawn();
  expect(cells(rowsOf(el)[1])).toEqual(["1", "op 1only", "", "kernel"]);
  expect(calls.at(-1)?.params.columns).toEqual(["rank", "name", "correlation", "category"]);
});

it("keeps the search in reach when nothing is found", async () => {
  const { el } = await table({
    rows: 0,
    status: "empty",
    query: "zzz",
    message: "No event lies in the selection.",
  });
  expect(el.querySelector(".hta-events-grid")).toBe(null);
  expect(el.querySelector<HTMLInputElement>("input[type=search]")?.value).toBe("zzz");
  expect(el.textContent).toContain("No event lies in the selection.");
  expect([...el.querySelectorAll("button")].map((button) => button.textContent)).not.toContain("Export");
});

it("saves the file that the kernel makes, piece by piece, and can give it up", async () => {
  const { el, model, calls } = await table();
  const saved: Blob[] = [];
  URL.createObjectURL = (blob) => String(saved.push(blob as Blob));
  URL.revokeObjectURL = () => undefined;
  HTMLAnchorElement.prototype.click = () => undefined;
  const menu = () => el.querySelector<HTMLElement>(".hta-menu > button");
  const choose = async (text: string) => {
    menu()?.click();
    await drawn();
    const items = [...el.querySelectorAll<HTMLElement>('[role="menuitem"]')];
    items.find((item) => item.textContent === text)?.click();
    await drawn();
  };
  const send = (chunks: number, bytes: number[]) => {
    const { call } = calls.at(-1) as Call;
    model.emit("msg:custom", { rpc: 1, call, result: { chunks } }, [
      new DataView(Uint8Array.from(bytes).buffer),
    ]);
    return drawn();
  };
  await choose("Parquet");
  await send(2, [1, 2]);
  expect(el.querySelector(".hta-events-bar")?.textContent).toContain("Parquet 50 %");
  expect(calls.at(-1)?.params).toMatchObject({ form: "parquet", chunk: 1 });
  await send(2, [3]);
  expect([saved[0]?.size, saved[0]?.type]).toEqual([3, "application/vnd.apache.parquet"]);
  await choose("CSV");
  expect(menu()?.textContent).toContain("cancel");
  menu()?.click();
  await drawn();
  expect(calls.some((call) => call.method === "forget_file")).toBe(true);
  expect([saved.length, el.textContent?.includes("failed")]).toEqual([1, false]);
  await choose("CSV");
  const { call } = calls.at(-1) as Call;
  model.emit("msg:custom", { rpc: 1, call, error: { type: "MemoryError", message: "full" } });
  await drawn();
  expect(el.querySelector("[role=alert]")?.textContent).toBe("CSV failed: full");
});

it("never takes a name for markup", async () => {
  const { el, model } = await show(state);
  const { call } = model.sent.map((message) => message.content as Call)[0] as Call;
  const markup = "<img src=x onerror=alert(1)>";
  const { data, ...head } = wire({ rank: [0], event_id: [1], name: [markup], event_class: [markup] });
  model.emit("msg:custom", { rpc: 1, call, result: head }, data ? [data] : []);
  await drawn();
  expect(el.querySelector("img")).toBe(null);
  expect(cells(rowsOf(el)[0])[1]).toBe(`${markup}only`);
});

it("says that a page could not be read", async () => {
  const { el, model } = await show(state);
  const { call } = model.sent.map((message) => message.content as Call)[0] as Call;
  model.emit("msg:custom", { rpc: 1, call, error: { type: "MemoryError", message: "full" } });
  await drawn();
  expect(el.querySelector("[role=alert]")?.textContent).toBe("The events could not be read: full");
});

it("fetches what is in sight first, two pages at a time, and aborts what is no longer needed", async () => {
  const requests: { first: number; signal: AbortSignal; done(table: Table): void }[] = [];
  let changes = 0;
  const pages = new Pages(
    (first, _count, signal) => new Promise((done) => requests.push({ first, signal, done })),
    () => {
      changes += 1;
    },
    () => undefined,
  );
  pages.want(0, 10, 10_000);
  expect(requests.map((request) => request.first)).toEqual([0, PAGE_ROWS]);
  pages.want(5000, 5010, 10_000); // a long way further: only this page comes next
  requests[0]?.done(decode(page(0, PAGE_ROWS)));
  await drawn();
  expect(requests.map((request) => request.first / PAGE_ROWS)).toEqual([0, 1, 39]);
  expect([pages.row(3)?.at, pages.row(PAGE_ROWS)]).toEqual([3, undefined]);
  pages.reset();
  expect(requests.map((request) => request.signal.aborted)).toEqual([true, true, true]);
  expect(pages.row(3)?.at).toBe(3); // until the first new page is there
  requests[2]?.done(decode(page(39 * PAGE_ROWS, PAGE_ROWS)));
  await drawn();
  expect([pages.row(5000), changes]).toEqual([undefined, 1]);
  pages.want(0, 10, 10_000);
  requests[3]?.done(decode(page(100, PAGE_ROWS)));
  await drawn();
  expect(pages.row(0)?.table.numbers("event_id")[0]).toBe(100);
});

it("prints numbers by what they are", () => {
  const column = (name: string, type: "text" | "number" = "number") => eventColumn({ name, title: "", type });
  expect(column("start_ns").cell(1_234_567_891)).toBe("1,234,567.891");
  expect(column("start_ns").tip(1_234_567_891)).toBe("1,234,567,891 ns");
  expect([column("correlation").cell(1234567), column("correlation").cell(Number.NaN)]).toEqual([
    "1234567",
    "",
  ]);
  expect(column("external_id").cell("9007199254740993")).toBe("9007199254740993");
  expect([column("alloc_bytes").unit, column("alloc_bytes").cell(4096)]).toEqual(["B", "4,096"]);
  expect(column("event_class", "text").cell("memory_copy")).toBe("memory copy");
});

it("sorts the longest first, identifiers upward, and then as it was", () => {
  expect(["", "-dur_ns", "dur_ns"].map((sort) => nextSort(sort, "dur_ns"))).toEqual([
    "-dur_ns",
    "dur_ns",
    "",
  ]);
  expect(["-dur_ns", "name", "-name"].map((sort) => nextSort(sort, "name"))).toEqual(["name", "-name", ""]);
});

it("moves within the rows", () => {
  expect(["ArrowUp", "ArrowDown", "End", "PageUp", "x"].map((name) => moveOf(name, 3, 9, 5))).toEqual([
    2,
    4,
    8,
    0,
    undefined,
  ]);
  expect(moveOf("Home", -1, 0, 5)).toBe(undefined);
});
