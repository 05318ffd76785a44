import { afterEach, expect, it } from "vitest";
import { FrozenModel } from "../src/host";
import { drawn, EXPLORER, show, wire } from "./support";

afterEach(() => document.body.replaceChildren());

const series = [
  { column: "compute_ns", label: "Compute", time_class: "compute" },
  { column: "idle_ns", label: "Idle", time_class: "idle" },
];

function ranksState(count: number) {
  const ranks = Array.from({ length: count }, (_, rank) => rank);
  return {
    _view: "ranks",
    ranks: [],
    series,
    whole: "window_ns",
    options: ranks.map((rank) => ({ rank, label: String(rank) })),
    table: wire({
      rank: ranks,
      window_ns: ranks.map(() => 100),
      compute_ns: ranks.map(() => 25),
      idle_ns: ranks.map(() => 75),
    }),
  };
}

const buttons = (el: Element, selector: string) => [
  ...el.querySelectorAll<HTMLButtonElement>(`${selector} button`),
];
const key = (target: Element, name: string, keys = {}) =>
  target.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, cancelable: true, ...keys }));

it("selects ranks by mouse, keyboard and from Python", async () => {
  const { el, model } = await show(ranksState(4));
  const cells = buttons(el, ".hta-rank-grid");
  expect(cells[2]?.getAttribute("aria-label")).toBe("Rank 2: Compute 25.0 %, Idle 75.0 %");
  cells[1]?.click();
  await drawn();
  expect([model.get("ranks"), model.saved]).toEqual([[1], 1]);
  expect(cells.map((cell) => cell.getAttribute("aria-pressed"))).toEqual(["false", "true", "false", "false"]);
  expect(cells.map((cell) => cell.tabIndex)).toEqual([-1, 0, -1, -1]);
  key(cells[1] as Element, "ArrowRight", { shiftKey: true });
  await drawn();
  expect(model.get("ranks")).toEqual([1, 2]);
  expect(document.activeElement).toBe(cells[2]);
  key(cells[2] as Element, "Escape");
  expect(model.get("ranks")).toEqual([]);
  model.set("ranks", [3]);
  await drawn();
  expect(cells[3]?.getAttribute("aria-pressed")).toBe("true");
});

it("draws 1,024 ranks with one element for each bar", async () => {
  const { el } = await show(ranksState(1024));
  expect(buttons(el, ".hta-rank-grid")).toHaveLength(1024);
  expect(el.querySelectorAll("*").length).toBeLessThan(1024 * 3 + 50);
});

it("keeps keys from the notebook and cleans up", async () => {
  const { el, close, model } = await show(ranksState(2));
  const cell = buttons(el, ".hta-rank-grid")[0] as HTMLElement;
  const heard = (init: KeyboardEventInit, type = "d") => {
    key(cell, type, init);
    return cell.dataset.lmSuppressShortcuts !== "true";
  };
  expect([heard({}), heard({ ctrlKey: true }, "s"), heard({ ctrlKey: true }, "z")]).toEqual([
    false,
    true,
    false,
  ]);
  expect(document.head.querySelectorAll('style[data-hta="theme"]')).toHaveLength(1);
  close();
  expect(el.childElementCount).toBe(0);
  model.set("ranks", [1]); // nobody listens
});

it("marks iterations that the recording cut", async () => {
  const { el } = await show({
    _view: "iterations",
    iterations: [552],
    source: "ProfilerStep",
    table: wire({
      iteration: [551, 552],
      label: ["ProfilerStep#551", "ProfilerStep#552"],
      slowest_ns: [2e6, 1e6],
      fastest_ns: [1e6, 1e6],
      slowest_rank: [3, 0],
      ranks: [4, 1],
      partial: [1, 0],
    }),
  });
  const [first, second] = buttons(el, ".hta-step-strip");
  expect(first?.title).toBe(
    "Iteration 551: 2.00 ms on rank 3, the slowest of 4; 1.00 ms on the fastest; incomplete",
  );
  expect(first?.querySelector<HTMLElement>(".hta-step")?.dataset.partial).toBe("true");
  expect(second?.getAttribute("aria-pressed")).toBe("true");
  const height = (step?: Element) => step?.querySelector<HTMLElement>(".hta-step")?.style.height;
  expect([height(first), height(second)]).toEqual(["100%", "50%"]); // of the longest
  expect(el.textContent).not.toContain("longer");
});

it("keeps usual steps apart beside one that takes far longer, and says how long that one takes", async () => {
  const slowest = [1e9, 2e6, 1e6, 2e6, 1e6];
  const { el } = await show({
    _view: "iterations",
    iterations: [],
    source: "ProfilerStep",
    table: wire({ iteration: [0, 1, 2, 3, 4], slowest_ns: slowest, fastest_ns: slowest }),
  });
  const bars = [...el.querySelectorAll<HTMLElement>(".hta-step")];
  expect(bars.map(({ style }) => style.height)).toEqual(["100%", "100%", "50%", "100%", "50%"]);
  expect(bars.map(({ dataset }) => "off" in dataset)).toEqual([true, false, false, false, false]);
  expect(el.textContent).toContain("longer: #0 (1.00 s)");
});

const panel = {
  _view: "breakdown",
  kind: "temporal_breakdown",
  title: "Where the time goes",
  sentence: "Rank 0 is idle most.",
  expression: 'explorer.frame("temporal_breakdown")',
  chart: { type: "stack", series, whole: "window_ns" },
  ranks: [],
  rows: 2,
  table: wire({ rank: [0, 1], window_ns: [4e6, 2e6], compute_ns: [1e6, 2e6], idle_ns: [3e6, 0] }),
};

it("says which time a panel is about, where it is about one", async () => {
  const { el, model } = await show({ ...panel, status: "idle", message: "", whole: "over 5 steps, 402 ms" });
  const beside = () => el.querySelector("h3 + .hta-muted")?.textContent;
  expect(beside()).toBe("over 5 steps, 402 ms");
  model.set("whole", "");
  await drawn();
  expect(beside()).toBeUndefined();
});

it("says why there is no breakdown", async () => {
  const text = "The trace has no device events. Record with ProfilerActivity.CUDA <b>now</b>";
  const { el } = await show({ ...panel, table: null, status: "empty", message: text });
  expect(el.querySelector('[role="status"]')?.textContent).toBe(text);
  expect(el.querySelector("b, svg")).toBeNull();
});

it("shows the loading, cancels it, then puts the parts in place", async () => {
  const child = new FrozenModel({ status: "idle", message: "", ...ranksState(2) });
  const { el, model } = await show(
    {
      ...EXPLORER,
      header: [],
      health: [],
      notices: [],
      parts: [],
      available_panels: [],
      panels: [],
      status: "busy",
      message: "1 of 4",
      progress: 0.25,
    },
    { "anywidget:1": child },
  );
  expect(el.querySelector('[role="progressbar"]')?.getAttribute("aria-valuenow")).toBe("25");
  el.querySelector<HTMLButtonElement>(".hta-loading button")?.click();
  expect(model.sent[0]?.content).toMatchObject({ rpc: 1, method: "cancel" });
  model.set("header", [{ label: "Ranks", value: "2", title: "" }]);
  model.set("health", [
    { severity: "warning", check: "orphans", count: 3, detail: "<i>x</i>", remedy: "", ranks: [0, 1] },
  ]);
  model.set("parts", [["ranks", "anywidget:1"]]);
  model.set("status", "idle");
  await drawn();
  await drawn();
  expect(el.querySelector(".hta-loading")).toBeNull();
  expect(el.querySelector(".hta-health")?.textContent).toContain("1 warning");
  expect(el.querySelector(".hta-health i")).toBeNull();
  expect(el.querySelector(".hta-notices")).toBeNull();
  expect(buttons(el, '[data-area="ranks"] .hta-rank-grid')).toHaveLength(2);
});

it("leaves out the words of facts that speak for themselves", async () => {
  const facts = [
    ["Device", "H100"],
    ["Device name", "not recorded"],
    ["Ranks", "1"],
    ["Ranks", "2 of 128"],
  ].map(([label, value]) => ({ label, value, title: "" }));
  const told = async (fact: object) => {
    const { el } = await show({ ...EXPLORER, parts: [["ranks", "anywidget:none"]], header: [fact] });
    await drawn();
    const item = el.querySelector(".hta-facts li");
    item?.querySelector(".hta-hidden")?.remove();
    return item?.textContent?.trim();
  };
  const said = [];
  for (const fact of facts) said.push(await told(fact));
  expect(said).toEqual(["H100", "device name not recorded", "1 rank", "2 of 128 ranks"]);
});
