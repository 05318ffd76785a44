// What the launcher lists for what is typed.

import { expect, it, vi } from "vitest";
import { mentions } from "../src/launcher";
import type { Entry } from "../src/panelbar";
import { choicesOf, type Places } from "../src/places";
import type { Rpc } from "../src/rpc";

const entry = (kind: string, label: string, group: string): Entry => ({
  kind,
  label,
  title: `All of ${kind}`,
  group,
  wide: false,
});

function places(found: string[] = []) {
  const call = vi.fn(async () => ({ result: found, buffers: [] }));
  const given = {
    panels: () => [
      entry("rank_waits", "Job waits", "Jobs"),
      entry("job", "Job", "Jobs"),
      entry("gpu_utilization", "Utilization", "Time"),
      entry("memory_peak", "Job memory", "Memory"),
    ],
    relevant: () => ["gpu_utilization"],
    lacking: () => ({ rank_waits: "One rank was recorded." }),
    ranks: () => [0, 1, 2, 10, 11, 12, 13, 14, 21],
    iterations: () => [1, 5, 10],
    commands: [
      { group: "Commands", label: "Save report", detail: "one file", keywords: "html", run: () => {} },
    ],
    rpc: { call } as unknown as Rpc,
    open: vi.fn(),
    select: vi.fn(),
  } satisfies Places;
  return { given, call, choices: choicesOf(given) };
}

const labels = (choices: readonly { label: string }[]) => choices.map(({ label }) => label);

it("lists the panel of that name first, and last what cannot answer", () => {
  const { choices, given } = places();
  expect(labels(choices.now("job"))).toEqual(["Job", "Job memory", "Job waits", "Search events for “job”"]);
  const last = choices.now("job")[2];
  expect([last?.group, last?.detail]).toEqual(["Cannot answer here", "One rank was recorded."]);
  choices.now(" JOB ")[0]?.run();
  expect(given.open.mock.calls).toEqual([["job"]]);
});

it("finds panels and commands by words that do not stand in their names", () => {
  const { choices } = places();
  expect(labels(choices.now("nvidia-smi"))[0]).toBe("Utilization");
  expect(labels(choices.now("html"))[0]).toBe("Save report");
  expect(mentions("SMI gpu", "GPU load", undefined, "nvidia-smi")).toBe(true);
  expect(mentions("smi rank", "GPU load", "nvidia-smi")).toBe(false);
});

it("lists all that there is, and no search, while nothing is typed", () => {
  expect(labels(places().choices.now(""))).toEqual([
    "Utilization",
    "Job",
    "Job memory",
    "Job waits",
    "Save report",
  ]);
});

it.each([
  ["1", ["Rank 1", "Rank 10", "Rank 11", "Rank 12", "Iteration 1", "Iteration 10"]],
  ["rank 2", ["Rank 2", "Rank 21"]],
  ["R 2", ["Rank 2", "Rank 21"]],
  ["iter 5", ["Iteration 5"]],
  ["step 5", []],
  ["5 x", []],
])("lists for %j the ranks and iterations %j", (text, expected) => {
  const { choices } = places();
  expect(labels(choices.now(text)).filter((label) => /^(Rank|Iteration) \d/.test(label))).toEqual(expected);
});

it("selects what is chosen", () => {
  const { choices, given } = places();
  choices.now("rank 21")[0]?.run();
  choices.now("iteration 5")[0]?.run();
  choices.now("gemm").at(-1)?.run();
  expect(given.select.mock.calls).toEqual([
    ["ranks", [21]],
    ["iterations", [5]],
    ["query", "gemm"],
  ]);
});

it("asks for names of events from two letters on", async () => {
  const { choices, call, given } = places(["void at::native::gemm<float>(int)"]);
  expect(await choices.later("g")).toEqual([]);
  expect(call).not.toHaveBeenCalled();
  const [found] = await choices.later("ge");
  expect(call.mock.calls).toEqual([["find_names", { text: "ge" }]]);
  expect([found?.group, found?.detail]).toEqual(["Event names", "void at::native::gemm<float>(int)"]);
  found?.run();
  expect(given.select.mock.calls).toEqual([["names", ["void at::native::gemm<float>(int)"]]]);
});
