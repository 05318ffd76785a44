import { expect, it } from "vitest";
import { found, grouped, type Option, sorted } from "../src/rank_order";
import { drawn, show, wire } from "./support";

const OPTIONS: Option[] = [0, 1, 2, 12, 20, 120].map((rank) => ({ rank, label: String(rank) }));
const names = (rank: number) => (rank < 12 ? "gpu-a\nstage 1" : "gpu-b (old)\nstage 12");
const ranksOf = (text: string) => found(OPTIONS, text, names).map(({ rank }) => rank);

it("finds ranks by number, range and name", () => {
  expect(ranksOf("")).toEqual([0, 1, 2, 12, 20, 120]);
  expect(ranksOf("12")).toEqual([12]);
  expect(ranksOf("2-20")).toEqual([2, 12, 20]);
  expect(ranksOf("0, 20 , 120")).toEqual([0, 20, 120]);
  expect(ranksOf("stage 1")).toEqual([0, 1, 2]);
  expect(ranksOf("STAGE 12")).toEqual([12, 20, 120]);
  expect(ranksOf("gpu-b (")).toEqual([12, 20, 120]);
  expect(ranksOf("rank 2")).toEqual([2]);
  expect(ranksOf("9-3, nothing")).toEqual([]);
});

it("sorts by size, the largest and known first, or has some first", () => {
  const sizes = new Map([
    [0, 5],
    [1, Number.NaN],
    [2, 7],
    [3, 5],
  ]);
  expect(sorted([3, 2, 1, 0], [], null)).toEqual([0, 1, 2, 3]);
  expect(sorted([0, 1, 2, 3], [3, 1], null)).toEqual([3, 1, 0, 2]);
  expect(sorted([0, 1, 2, 3], [], (rank) => sizes.get(rank) ?? Number.NaN)).toEqual([2, 0, 3, 1]);
});

it("groups what is shown, those that are in none at the end", () => {
  const by = { name: "Host", groups: ["a", "b"], of: [1, 0, 1, -1, 0, 1] };
  expect(grouped(OPTIONS, [120, 0, 1, 12], by)).toEqual([
    { name: "a", ranks: [1] },
    { name: "b", ranks: [120, 0] },
    { name: "in no group", ranks: [12] },
  ]);
  expect(grouped(OPTIONS, [2, 1], undefined)).toEqual([{ name: "", ranks: [2, 1] }]);
});

function many(count: number) {
  const ranks = Array.from({ length: count }, (_, rank) => rank);
  return {
    _view: "ranks",
    ranks: [],
    series: [{ column: "compute_ns", label: "Compute", time_class: "compute" }],
    whole: "window_ns",
    outliers: [{ rank: count - 1, why: "compute 9 ms, median 5 ms (+40 % of the time)" }],
    options: ranks.map((rank) => ({ rank, label: String(rank) })),
    table: wire({ rank: ranks, window_ns: ranks.map(() => 100), compute_ns: ranks.map((rank) => rank % 7) }),
  };
}

const shown = (el: HTMLElement) =>
  [...el.querySelectorAll(".hta-rank-grid .hta-rank-label")].map((label) => Number(label.textContent));
const button = (el: HTMLElement, text: string) =>
  [...el.querySelectorAll("button")].find((one) => one.textContent?.startsWith(text)) as HTMLButtonElement;

it("has what stands out first where ranks are many, and marks it everywhere", async () => {
  const few = await show(many(12));
  expect(shown(few.el).slice(0, 2)).toEqual([0, 1]);
  expect(few.el.querySelectorAll("[data-outlier]")).toHaveLength(1);
  expect(few.el.querySelector("[data-outlier]")?.getAttribute("aria-label")).toContain(
    "stands out: compute 9 ms",
  );
  const { el } = await show(many(13));
  expect(shown(el).slice(0, 3)).toEqual([12, 0, 1]);
  expect(few.el.querySelector("input[type=search]")).toBeNull();
  expect(el.querySelector("input[type=search]")).not.toBeNull();
});

it("tells the place of a rank, and finds ranks by it", async () => {
  const { el, model } = await show({
    ...many(16),
    options: Array.from({ length: 16 }, (_, rank) => ({
      rank,
      label: String(rank),
      place: `stage ${Math.floor(rank / 8)}, tensor rank ${rank % 8}`,
    })),
  });
  const cell = el.querySelectorAll(".hta-rank-grid [aria-label]")[4] as HTMLElement;
  expect(cell.getAttribute("aria-label")).toMatch(/^Rank 3 \(stage 0, tensor rank 3\): Compute 3/);
  const box = el.querySelector("input[type=search]") as HTMLInputElement;
  box.value = "tensor rank 1";
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await drawn();
  expect(shown(el)).toEqual([1, 9]);
  expect(model.sent.map(({ content }) => (content as { method: string }).method)).toEqual(["groups"]);
});

it("sorts by a measure and says it, and selects what was found", async () => {
  const { el, model } = await show(many(20));
  button(el, "Order").click();
  await drawn();
  const radio = [...el.querySelectorAll("label")].find((one) => one.textContent === "Compute");
  radio?.querySelector("input")?.click();
  await drawn();
  expect(shown(el).slice(0, 4)).toEqual([6, 13, 5, 12]);
  expect(el.querySelector(".hta-rank-grid button")?.getAttribute("aria-label")).toContain("Compute 6 ns");
  const box = el.querySelector("input[type=search]") as HTMLInputElement;
  box.value = "3-5, 19";
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await drawn();
  expect(shown(el)).toEqual([5, 19, 4, 3]);
  button(el, "Select 4").click();
  expect(model.get("ranks")).toEqual([3, 4, 5, 19]);
});

it("asks who belongs together once, and selects a group by its name", async () => {
  const { el, model } = await show(many(16));
  button(el, "Order").click();
  await drawn();
  const asked = model.sent.map(({ content }) => content as { call: string; method: string });
  expect(asked.map(({ method }) => method)).toEqual(["groups"]);
  const of = Array.from({ length: 16 }, (_, rank) => Number(rank >= 8));
  const groups = [{ name: "Node", groups: ["node 0", "node 1"], of }];
  model.emit("msg:custom", { rpc: 1, call: asked[0]?.call, result: { groups } }, []);
  await drawn();
  const radio = [...el.querySelectorAll("label")].find((one) => one.textContent === "Node");
  radio?.querySelector("input")?.click();
  await drawn();
  expect([...el.querySelectorAll(".hta-rank-head")].map((head) => head.textContent)).toEqual([
    "node 0 8",
    "node 1 8",
  ]);
  button(el, "node 1").click();
  expect(model.get("ranks")).toEqual([8, 9, 10, 11, 12, 13, 14, 15]);
  expect(model.sent).toHaveLength(1);
});

it("asks who waits once for an answer, whatever is searched", async () => {
  const { el, model } = await show(many(16));
  button(el, "Order").click();
  await drawn();
  const radio = [...el.querySelectorAll("label")].find((one) => one.textContent === "Waits caused");
  radio?.querySelector("input")?.click();
  await drawn();
  const waits = () =>
    model.sent
      .map(({ content }) => content as { call: string; method: string })
      .filter((one) => one.method === "waits");
  expect(waits()).toHaveLength(1);
  const caused = Array.from({ length: 16 }, (_, rank) => (rank === 9 ? 7000 : 0));
  const result = { waits: { waiting: caused.map(() => 1), caused }, missing: "" };
  model.emit("msg:custom", { rpc: 1, call: waits()[0]?.call, result }, []);
  await drawn();
  expect(shown(el)[0]).toBe(9);
  const box = el.querySelector("input[type=search]") as HTMLInputElement;
  box.value = "3, 9";
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await drawn();
  expect(shown(el)).toEqual([9, 3]);
  expect(waits()).toHaveLength(1);
  model.set("table", { ...many(16).table });
  await drawn();
  expect(waits()).toHaveLength(2);
});

it("finds ranks by the names of their groups, once these are known", async () => {
  const { el, model } = await show(many(16));
  const box = el.querySelector("input[type=search]") as HTMLInputElement;
  box.value = "node 1";
  box.dispatchEvent(new Event("input", { bubbles: true }));
  box.dispatchEvent(new KeyboardEvent("keydown", { key: "Enter", bubbles: true }));
  await drawn();
  expect(shown(el)).toEqual([]);
  const [asked] = model.sent.map(({ content }) => content as { call: string; method: string });
  const of = Array.from({ length: 16 }, (_, rank) => (rank === 4 ? -1 : Number(rank >= 14)));
  const groups = [{ name: "Node", groups: ["node 0", "node 1"], of }];
  model.emit("msg:custom", { rpc: 1, call: asked?.call, result: { groups } }, []);
  await drawn();
  expect(shown(el)).toEqual([15, 14]); // 15 stands out
});
