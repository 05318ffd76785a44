// The job: ranks at their places, many in few rows, brushes that select, and what shows a culprit.

import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { FrozenModel } from "../src/host";
import { mount } from "../src/job";
import { binned, cellOf, MOST_ROWS, SINGLE } from "../src/job/bins";
import { picked, samePick } from "../src/job/picking";
import { placed } from "../src/job/places";
import { ordered, type Rank, ranksOf, roleOf, shading } from "../src/job/ranks";
import { Cells, Pairs, UNKNOWN } from "../src/job/sent";
import { type Evidence, SHOW } from "../src/showing";
import { drawn, press, wire } from "./support";

const NONE = Number.NaN;

/** What `analysis.job_ranks` says of ranks of which one is slow. */
function tableOf(
  count: number,
  slow: number,
  places: (rank: number) => [number, number, number],
  usual = -5,
) {
  const ranks = Array.from({ length: count }, (_, rank) => rank);
  const of = (value: (rank: number) => number) => ranks.map(value);
  return wire({
    rank: ranks,
    stage: of((rank) => places(rank)[0]),
    replica: of((rank) => places(rank)[1]),
    node: of((rank) => places(rank)[2]),
    iterations: of(() => 2),
    window_ns: of(() => 4000),
    compute_ns: of((rank) => (rank === slow ? 2000 : 1000)),
    waiting_ns: of((rank) => (rank === slow ? 0 : 1000)),
    caused_ns: of((rank) => (rank === slow ? 1000 * (count - 1) : 0)),
    idle_ns: of((rank) => 10 * rank),
    cost_ns: of((rank) => (rank === slow ? 400 : usual)),
    culprit: of((rank) => (rank === slow ? 1 : 0)),
    cause: ranks.map((rank) => (rank === slow ? "more work" : "")),
  });
}

const nowhere = (): [number, number, number] => [NONE, NONE, NONE];
const labels = (count: number) => Array.from({ length: count }, (_, rank) => String(rank));
const jobOf = (count: number, places = nowhere as (rank: number) => [number, number, number]): Rank[] =>
  ranksOf(tableOf(count, 1, places), labels(count));

describe("ranks", () => {
  it("are measured per step, but for what they cost, which is", () => {
    const [first, slow] = jobOf(2);
    expect(first?.values).toEqual({ cost: -5, compute: 500, waiting: 500, caused: 0, idle: 0 });
    expect(slow?.values.cost).toBe(400);
    const [even] = ranksOf(tableOf(2, 1, nowhere, -0.1), labels(2));
    expect(even?.values.cost).toBe(0); // of a step of 2,000 ns
    expect(slow?.culprit).toBe(true);
    expect(roleOf(slow as Rank)).toBe("");
    expect(roleOf({ ...(slow as Rank), stage: 1, replica: 3 })).toBe("stage 1, replica 3");
    expect(roleOf({ ...(slow as Rank), replica: 0, tensor: 2 })).toBe("replica 0, tensor rank 2");
  });

  it("stand by place or by size, equals by number", () => {
    const job = jobOf(4, (rank) => [rank % 2, Math.floor(rank / 2), NONE]);
    expect(ordered(job, "place", "cost").map(({ rank }) => rank)).toEqual([0, 2, 1, 3]);
    expect(ordered(job, "measure", "cost").map(({ rank }) => rank)).toEqual([1, 0, 2, 3]);
    expect(ordered(job, "measure", "idle").map(({ rank }) => rank)).toEqual([3, 2, 1, 0]);
  });

  it("have a line for each stage, else for each node, else lines of equally many", () => {
    const stages = ordered(
      jobOf(8, (rank) => [rank % 4, Math.floor(rank / 4), NONE]),
      "place",
      "cost",
    );
    const grid = placed(stages, "place", 600);
    expect(grid.lines.map(({ label }) => label)).toEqual(["stage 0", "stage 1", "stage 2", "stage 3"]);
    expect(grid.columns).toBe(2);
    expect(grid.at.get(6)).toEqual([2, 1]);
    const nodes = placed(
      jobOf(8, (rank) => [NONE, NONE, Math.floor(rank / 4)]),
      "place",
      600,
    );
    expect(nodes.lines.map(({ label }) => label)).toEqual(["node 0", "node 1"]);
    expect(nodes.columns).toBe(4);
    const many = placed(jobOf(1024), "place", 600);
    expect(many).toMatchObject({ columns: 32, named: false });
    expect(many.lines).toHaveLength(32);
    expect(many.lines[1]).toEqual({ row: 1, rows: 1, label: "32" });
    expect(placed(jobOf(1024), "measure", 600).lines[1]?.label).toBe("#33");
    // where cells carry names, lines need none
    expect(placed(jobOf(64), "place", 600)).toMatchObject({ columns: 8, named: true, lines: [] });
  });

  it("of a long stage take several rows", () => {
    const grid = placed(
      jobOf(512, (rank) => [rank % 2, Math.floor(rank / 2), NONE]),
      "place",
      660,
    );
    expect(grid.columns).toBe(52); // as many in each row
    expect(grid.lines).toEqual([
      { row: 0, rows: 5, label: "stage 0" },
      { row: 5, rows: 5, label: "stage 1" },
    ]);
  });

  it("are shaded from nothing, or from the least; unknown ones are not", () => {
    const plain = shading([0, 50, 100, NONE], false);
    expect([plain.least, plain.most, plain.of(100)]).toEqual([0, 100, 1]);
    expect(plain.of(-5)).toBe(plain.of(0));
    expect(plain.of(NONE)).toBeNaN();
    const contrast = shading([100, 102], true);
    expect(contrast.least).toBe(100);
    expect(contrast.of(102)).toBeLessThan(0.3); // two percent are no contrast
  });
});

describe("many ranks", () => {
  it("have a row each as long as there is room", () => {
    expect(binned(jobOf(SINGLE), [1], false)).toHaveLength(SINGLE);
    expect(binned(jobOf(8), [], false)[7]).toMatchObject({ ranks: [7], label: "7", pinned: false });
  });

  it("share rows, and the first to look at have their own as well", () => {
    const bins = binned(jobOf(1024), [700, 0], false);
    expect(bins.slice(0, 2).map(({ label }) => label)).toEqual(["0", "700"]);
    const runs = bins.filter(({ pinned }) => !pinned);
    expect(runs).toHaveLength(MOST_ROWS);
    expect(runs.flatMap(({ ranks }) => ranks)).toEqual(jobOf(1024).map(({ rank }) => rank));
    expect(runs[21]?.label).toBe("672–703");
    expect(binned(jobOf(1024), [], true)[1]?.label).toBe("#33–64");
  });

  it("of different stages share no row", () => {
    const job = ordered(
      jobOf(100, (rank) => [rank % 2, Math.floor(rank / 2), NONE]),
      "place",
      "cost",
    );
    const bins = binned(job, [], false);
    expect(bins[0]).toMatchObject({ ranks: [0, 2, 4, 6], label: "0 … 6" });
    expect(bins.every(({ ranks }) => new Set(ranks.map((rank) => rank % 2)).size === 1)).toBe(true);
    expect(bins.flatMap(({ ranks }) => ranks)).toEqual(job.map(({ rank }) => rank));
  });

  it("are told by their mean and by who has the most", () => {
    const value = (rank: number) => (rank === 2 ? 90 : rank === 3 ? NONE : 10);
    expect(cellOf([0, 1, 2, 3], value)).toEqual({ mean: 110 / 3, most: 90, who: 2, count: 3 });
    expect(cellOf([3], value)).toBeNull();
  });
});

describe("what is sent", () => {
  it("is a number for each part, rank and column", () => {
    const cells = new Cells(
      { ranks: [4, 7], columns: [[0], [1, 2]], parts: ["compute_ns", "idle_ns"] },
      new Float32Array([1, 2, 3, 4, 5, 6, 7, 8]),
    );
    expect(cells.value("compute_ns", 7, 1)).toBe(4);
    expect(cells.value("idle_ns", 4, 0)).toBe(5);
    expect(cells.value("idle_ns", 5, 0)).toBeNaN();
  });

  it("is a wait for each pair; of blocks, the first rank stands for all", () => {
    const pairs = new Pairs(
      new Float32Array([0, 1, 5, 0, -1, 2, 1, 1, 4]),
      { block: 2, steps: 0 },
      [10, 11, 12, 13],
    );
    expect(pairs.waits.get(10)).toEqual(
      new Map([
        [12, 5],
        [UNKNOWN, 2],
      ]),
    );
    expect(pairs.caused.get(12)).toBe(9);
    expect(pairs.members(12)).toEqual([12, 13]);
  });

  it("is everything where all of it is picked", () => {
    expect(picked([2, 0, 2], [0, 1, 2])).toEqual([0, 2]);
    expect(picked([2, 0, 1], [0, 1, 2])).toEqual([]);
    expect(samePick([0, 2], [0, 2])).toBe(true);
    expect(samePick([], [0, 2])).toBe(false);
  });
});

let closing: AbortController;
beforeEach(() => {
  closing = new AbortController();
});
afterEach(() => {
  closing.abort();
  document.body.replaceChildren();
});

const EVIDENCE = {
  ranks: [0, 1],
  names: [],
  focus: [1, 17] as [number, number],
  window: [5, 9] as [number, number],
};

/** A view whose kernel sends `count` ranks and three iterations. */
async function show(count: number, state: Record<string, unknown> = {}, places = nowhere as never) {
  const ranks = Array.from({ length: count }, (_, rank) => rank);
  const model = new FrozenModel({
    _view: "job",
    status: "idle",
    message: "",
    table: tableOf(count, 1, places),
    labels: labels(count),
    notable: [
      { rank: 1, why: "culprit", cause: "more work", evidence: EVIDENCE },
      { rank: 0, why: "usual", cause: "", evidence: null },
    ],
    sentence: "More work: rank 1.",
    note: "",
    costs: "known",
    missing: "",
    version: 1,
    expression: 'explorer.frame("job")',
    ranks: [],
    iterations: [],
    ...state,
  });
  const parts = ["compute_ns", "waiting_ns", "transferring_ns", "idle_ns"];
  const cells = parts.flatMap((_, part) =>
    ranks.flatMap((rank) => [0, 1, 2].map((column) => 1000 * part + (rank === 1 ? 500 : 100) + column)),
  );
  const pairs = ranks.filter((rank) => rank !== 1).flatMap((rank) => [rank, 1, 1000]);
  const answers: Record<string, [unknown, number[]]> = {
    cells: [{ ranks, columns: [[7], [8], [9]], parts }, cells],
    pairs: [{ pairs: count - 1, steps: 2, block: 1 }, pairs],
  };
  model.on("test:sent", (content: { call: string; method: string }) => {
    const [result, values] = answers[content.method] as [unknown, number[]];
    const bytes = new DataView(new Float32Array(values).buffer);
    model.emit("msg:custom", { rpc: 1, call: content.call, result }, [bytes]);
  });
  const el = document.body.appendChild(document.createElement("div"));
  await mount({ model, el, signal: closing.signal, host: { getWidget: () => Promise.reject() } });
  if (state.version !== 0 && state.status !== "empty")
    await vi.waitFor(() => expect(el.querySelectorAll(".hta-job-matrix").length).toBeGreaterThan(0));
  await drawn();
  return { model, el };
}

const section = (el: Element, name: string) => el.querySelector(`section[aria-label="${name}"]`) as Element;
const marks = (el: Element) => [...el.querySelectorAll<SVGElement>("[data-at]")];
const mark = (el: Element, at: string) => el.querySelector(`[data-at="${at}"]`) as SVGElement;
const button = (el: Element, text: string) =>
  [...el.querySelectorAll("button")].find((one) => one.textContent === text) as HTMLButtonElement;

/** jsdom lays nothing out: the picture begins at 0, 0. */
function pointer(target: Element, type: string, x: number, y: number) {
  const event = new MouseEvent(type, { bubbles: true, button: 0, clientX: x, clientY: y, detail: 1 });
  target.dispatchEvent(Object.assign(event, { pointerId: 1 }));
}

it("says what is known, and shows each rank with its numbers and its role", async () => {
  const { el } = await show(4, {}, ((rank: number) => [rank % 2, Math.floor(rank / 2), NONE]) as never);
  expect(el.querySelector(".hta-job-sentence")?.textContent?.trim()).toBe("More work: rank 1.");
  const cells = [...el.querySelectorAll(".hta-job-grid button")];
  expect(cells.map((cell) => cell.textContent)).toEqual(["0", "2", "1", "3"]);
  expect(cells[2]?.getAttribute("aria-label")).toBe(
    "Rank 1 (stage 1, replica 0, culprit: more work): 400 ns cost per step",
  );
  expect(cells[0]?.getAttribute("aria-label")).toBe("Rank 0 (stage 0, replica 0): −5 ns cost per step");
  expect(cells[2]?.hasAttribute("data-culprit")).toBe(true);
  expect([...el.querySelectorAll(".hta-job-lines span")].map((line) => line.textContent)).toEqual([
    "stage 0",
    "stage 1",
  ]);
});

it("has room beside the ranks for the names of their lines", async () => {
  const { el } = await show(44, {}, (() => [0, 0, NONE]) as never);
  const field = el.querySelector<HTMLElement>(".hta-job-field");
  // three lines of cells 40 px wide beside 56 px for "stage 0" in 900 px; without the name it were two
  expect(field?.style.getPropertyValue("--hta-job-columns")).toBe("15");
});

it("tells all that is measured of the rank that is pointed at", async () => {
  const { el } = await show(4);
  const told = () => el.querySelector(".hta-job-told")?.textContent ?? "";
  expect(told()).toContain("Point at a rank");
  const cell = el.querySelectorAll(".hta-job-grid button")[1] as Element;
  cell.dispatchEvent(new Event("pointerover", { bubbles: true }));
  await drawn();
  expect(told()).toContain("Rank 1");
  expect(told()).toContain("400 ns");
});

it("changes what is shown of ranks, and their order", async () => {
  const { el } = await show(4);
  button(section(el, "Ranks"), "Idle").click();
  button(section(el, "Ranks"), "largest first").click();
  await drawn();
  const cells = [...el.querySelectorAll(".hta-job-grid button")];
  expect(cells.map((cell) => cell.textContent)).toEqual(["3", "2", "1", "0"]);
  expect(cells[0]?.getAttribute("aria-label")).toBe("Rank 3: 15 ns idle per step");
});

it("shows pictures while ranks are replayed, and says why nothing is known of costs", async () => {
  const { el, model } = await show(4, { sentence: "", costs: "busy" });
  expect(el.querySelector(".hta-job-sentence")?.textContent).toContain("Replaying");
  expect(button(el, "Cost").disabled).toBe(true);
  expect(button(section(el, "Ranks"), "Waiting").getAttribute("aria-pressed")).toBe("true");
  model.set("costs", "missing");
  model.set("missing", "Order is not recorded.");
  await drawn();
  expect(el.querySelector(".hta-job-sentence")?.textContent).toBe(
    "What ranks cost is not known. Order is not recorded.",
  );
  expect(button(el, "Cost").title).toBe("Order is not recorded.");
});

it("keeps what it shows until the costs are there, for a while", async () => {
  const { el, model } = await show(4);
  const first = () => el.querySelector(".hta-job-grid button")?.getAttribute("aria-label");
  const sentence = () => el.querySelector(".hta-job-sentence")?.textContent?.trim();
  const again = (costs: string, told: string) => {
    model.set("table", tableOf(4, 0, nowhere));
    model.set("sentence", told);
    model.set("costs", costs);
  };
  again("busy", "");
  await drawn();
  expect([first(), sentence()]).toEqual(["Rank 0: −5 ns cost per step", "More work: rank 1."]);
  again("known", "More work: rank 0.");
  await drawn();
  expect(first()).toBe("Rank 0 (culprit: more work): 400 ns cost per step");
  again("busy", "");
  await vi.waitFor(() => expect(sentence()).toContain("Replaying"), { timeout: 3000 });
  expect(first()).toBe("Rank 0 (culprit: more work): 0 ns waiting per step");
});

it("says what the job could save, and of one finding at a time what to do", async () => {
  const advice = ["A", "B"].map((title) => ({
    ...{ topic: title, noun: title, title: `${title} costs`, form: "simulated", figure: "−4 ns" },
    ...{ label: "−4 ns · simulated", what: [], why: [], todo: `Do ${title}.`, sure: "", wrong_if: "" },
    ...{ risk: "", needs: "", own: "", kind: "operators", edits: "x", lost_as: "idle", ranks: [0] },
    places: [{ rank: 0, start_ns: 5, end_ns: 9, label: "4 ns", cause: null }],
  }));
  const parts = [0, 1].map((at) => ({ ns: 4, form: "simulated", lost_as: "idle", finding: at }));
  const story = {
    ...{ scope: "all", narrowed: false, headline: "8 ns per step", limits: "", whole_ns: 8, per_step: true },
    ...{ parts, saved: "8 ns", remains: "0 ns", advice, clean: [], unknown: [], trust: "", asides: [] },
    ...{ kinds: [], nothing: "", hint: "", look_at: "" },
  };
  const { el } = await show(4, { story });
  const told = () => el.querySelector(".hta-job-advice")?.textContent ?? "";
  const segments = () => [...el.querySelectorAll<HTMLElement>(".hta-job-whole button.hta-seg")];
  expect([told(), segments().length]).toEqual(["", 2]);
  segments()[1]?.click();
  await drawn();
  expect(told()).toContain("Do B.");
  for (const word of ["Show", "Open panel", "What if"]) expect(told()).not.toContain(word);
  segments()[0]?.click();
  await drawn();
  expect(told()).toContain("Do A.");
  segments()[0]?.click();
  await drawn();
  expect(told()).toBe("");
});

it("says what is missing where there is no job", async () => {
  const { el } = await show(0, { status: "empty", message: "No second rank.", table: null, version: 0 });
  expect(el.querySelector("[role=status]")?.textContent).toBe("No second rank.");
  expect(el.querySelector(".hta-job-grid")).toBeNull();
});

it("says that no rank has the selected iterations, and what a stage costs", async () => {
  const { el, model } = await show(4, { note: "Repairing all of stage 1 wins 1 ms per step." });
  expect(el.querySelector(".hta-job-notable")?.textContent).toContain("Repairing all of stage 1 wins 1 ms");
  model.set("table", tableOf(0, 1, nowhere));
  await drawn();
  expect(el.textContent).toContain("No rank has any of the selected iterations.");
});

it("selects a rank and an iteration by a click, and nothing by a second one", async () => {
  const { el, model } = await show(8);
  const time = section(el, "Rank by iteration");
  const cell = mark(time, "1 2");
  expect(cell.getAttribute("aria-label")).toBe("rank 1, iteration 9: 502 ns compute");
  const [x, y] = [84 + 2.5 * 72, 1.5 * 20];
  pointer(cell, "pointerdown", x, y);
  pointer(cell, "pointerup", x, y);
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[1], [9]]);
  await drawn();
  expect(mark(time, "1 2").getAttribute("aria-pressed")).toBe("true");
  expect(mark(time, "2 2").getAttribute("aria-pressed")).toBe("false");
  pointer(cell, "pointerdown", x, y);
  pointer(cell, "pointerup", x, y);
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[], []]);
});

it("selects what is brushed; a whole side is all of it", async () => {
  const { el, model } = await show(8);
  const time = section(el, "Rank by iteration");
  pointer(mark(time, "2 0"), "pointerdown", 84 + 10, 2 * 20 + 5);
  pointer(mark(time, "4 2"), "pointermove", 84 + 2 * 72 + 10, 4 * 20 + 5);
  await drawn();
  expect(time.querySelector(".hta-brushed")).not.toBeNull();
  pointer(mark(time, "4 2"), "pointerup", 84 + 2 * 72 + 10, 4 * 20 + 5);
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[2, 3, 4], []]);
  await drawn();
  expect(time.querySelector(".hta-brushed")).toBeNull();
});

it("goes from cell to cell by arrows, and selects by Enter and Shift", async () => {
  const { el, model } = await show(8);
  const time = section(el, "Rank by iteration");
  expect(marks(time).filter((one) => one.getAttribute("tabindex") === "0")).toHaveLength(1);
  mark(time, "0 0").focus();
  press(mark(time, "0 0"), "ArrowDown");
  expect(document.activeElement).toBe(mark(time, "1 0"));
  press(mark(time, "1 0"), "End");
  expect(document.activeElement).toBe(mark(time, "1 2"));
  press(mark(time, "1 2"), "Enter");
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[1], [9]]);
  press(mark(time, "1 2"), "ArrowDown", { shiftKey: true });
  expect([model.get("ranks"), model.get("iterations")]).toEqual([[1, 2], [9]]);
});

it("shows who waits for whom, and selects both sides", async () => {
  const { el, model } = await show(8);
  const waits = section(el, "Who waits for whom");
  expect(marks(waits)).toHaveLength(7); // rank 1 waits for nobody
  expect(mark(waits, "3 0").getAttribute("aria-label")).toBe("Rank 3 waits 500 ns per step for rank 1");
  press(mark(waits, "3 0"), " ");
  expect(model.get("ranks")).toEqual([1, 3]);
});

it("of many ranks keeps what stands out, and goes into a row", async () => {
  const { el, model } = await show(128);
  const time = section(el, "Rank by iteration");
  const row = marks(time).filter((one) => one.dataset.at?.endsWith(" 0"));
  expect(row[0]?.getAttribute("aria-label")).toBe("rank 0, iteration 7: 100 ns compute");
  expect(row[1]?.getAttribute("aria-label")).toBe("rank 1, iteration 7: 500 ns compute");
  expect(row[2]?.getAttribute("aria-label")).toBe(
    "4 ranks 0–3, iteration 7: 200 ns on average, at most 500 ns (rank 1) compute",
  );
  expect(row[2]?.querySelector(".hta-job-beyond")).not.toBeNull();
  expect(row[3]?.querySelector(".hta-job-beyond")).toBeNull();
  press(row[2] as Element, "Enter");
  expect(model.get("ranks")).toEqual([0, 1, 2, 3]);
  press(row[2] as Element, "+");
  await drawn();
  const labelsNow = [...section(el, "Who waits for whom").querySelectorAll("[data-at]")].map((one) =>
    one.getAttribute("aria-label"),
  );
  expect(labelsNow).toEqual([0, 2, 3].map((rank) => `Rank ${rank} waits 500 ns per step for rank 1`));
  button(el, "All ranks").click();
  await drawn();
  expect(marks(section(el, "Rank by iteration"))).toHaveLength(3 * (2 + MOST_ROWS));
});

it("asks the explorer to show the culprit and who waits for it, and to go back", async () => {
  const { el } = await show(4);
  const asked: (Evidence | null)[] = [];
  document.body.addEventListener(SHOW, (event) => asked.push((event as CustomEvent).detail), {
    signal: closing.signal,
  });
  const rows = [...el.querySelectorAll(".hta-job-notable tbody tr")];
  expect(rows.map((row) => row.querySelectorAll("button").length)).toEqual([1, 0]);
  expect(rows[0]?.querySelector("th")?.textContent).toBe("1 culpritmore work");
  button(el, "Show").click();
  await drawn();
  expect(asked[0]).toEqual(EVIDENCE);
  expect(button(el, "Back").getAttribute("aria-pressed")).toBe("true");
  expect(button(el, "Back").title).toContain("Back to what was selected");
  button(el, "Back").click();
  await drawn();
  expect(asked[1]).toBeNull();
  expect(button(el, "Show").title).toContain("Zoom the timeline");
  expect(el.querySelector(".hta-job-notable p")?.textContent).toBe(
    "2 other ranks: cost −5 ns each per step.",
  );
});
