// The replay of a dependency graph: a graph by hand, whose times anyone can follow.

import { expect, it } from "vitest";
import { type Link, Replay } from "../src/replay/answer";
import { type Control, editOf, type Settings } from "../src/replay/controls";
import { unpack } from "../src/replay/graph";
import { Parts } from "../src/replay/parts";
import { ESTIMATE, MOST, PINNED, weights } from "../src/replay/pass";
import { control, GRAPH, packed } from "./replay";

const graph = unpack(packed(GRAPH));
const host = control("host", { scaled: [0], bound: true });
const kernels = control("kernels", { scaled: [2], speed: true });
const syncs = control("syncs", { removed: [3], off: "does not wait", bound: true });
const loader = control("loader", { off: "takes no time" });
const controls: Control[] = [host, kernels, syncs, loader];
const replay = new Replay(graph, controls);
/** The shares of edits, to their end. */
function chain(settings: Settings): Link[] {
  const replays = replay.chain(settings);
  for (;;) {
    const step = replays.next();
    if (step.done) return step.value;
  }
}
const times = (settings: object, mode = ESTIMATE) => [...replay.times(settings as never, mode)];

it("unpacks sources, long weights, residuals and cuts", () => {
  expect([...graph.first]).toEqual([0, 0, 1, 3, 4, 6, 7]);
  expect([...graph.source]).toEqual([0, 1, 0, 2, 1, 3, 4]);
  expect(graph.weight[2]).toBe(-(2 ** 31) - 5);
  expect([...graph.residual]).toEqual([0, 7, 0, 0, 0, 0, 0]);
  expect([...(graph.cuts.loader?.edge ?? [])]).toEqual([0]);
});

it("replays the recording, and scales, removes and cuts", () => {
  expect(times({})).toEqual([0, 100, 117, 158, 158, 161]);
  // floor(100 / 4 + .5), and floor(3 / 4 + .5)
  expect(times({ host: 0.25 })).toEqual([0, 25, 42, 83, 83, 84]);
  expect(times({ syncs: 0 })).toEqual([0, 100, 117, 158, 101, 104]);
  expect(times({ loader: 0 })).toEqual([0, 40, 57, 98, 98, 101]);
});

it("scales no slack between the clocks, which is no time", () => {
  const edit = editOf(graph, [control("all", { scaled: [0, 1, 2, 3] })], { all: 0.5 });
  expect([...weights(graph, edit, PINNED, new Float64Array(7))]).toEqual([
    50,
    5 + 7,
    -(2 ** 31) - 5,
    21,
    1,
    0,
    2,
  ]);
});

it("lets a residual stay, share, or go with the work beside it", () => {
  // the kernel of 41 ns takes 20.5; 4 of the 7 ns are shared with it
  expect(times({ kernels: 0.5 }, PINNED)[3]).toBe(117 + 21);
  expect(times({ kernels: 0.5 }, ESTIMATE)[3]).toBe(115 + 21);
  expect(times({ kernels: 0.5 }, MOST)[3]).toBe(114 + 21);
});

it("answers with a range, which a bound widens to what was recorded", () => {
  const { before, low, after, high } = replay.whole({ kernels: 0.5 });
  expect([before, low, after, high]).toEqual([161, 138, 139, 141]);
  expect(replay.whole({ syncs: 0 })).toMatchObject({ low: 158, after: 158, high: 161 });
  const bounds = chain({ syncs: 0, host: 0.1, kernels: 0 }).filter(({ bound }) => bound);
  expect(bounds.map(({ name }) => name)).toEqual(["syncs"]);
});

it("tells what each edit saves alone and after those that save more", () => {
  const link = { expression: "", bound: false, time_class: "host" };
  expect(chain({ loader: 0, kernels: 0.5 })).toEqual([
    { ...link, name: "loader", alone: 101, together: 101 },
    { ...link, name: "kernels", alone: 139, together: 79 },
  ]);
  expect(chain({})).toEqual([]);
});

it("maps the speeds of host and kernels", () => {
  const steps = replay.speedMap({}, [1, 4]);
  let step = steps.next();
  while (!step.done) step = steps.next();
  const of = (settings: Settings) => replay.whole(settings).after;
  const after = [of({}), of({ kernels: 0.25 }), of({ host: 0.25 }), of({ host: 0.25, kernels: 0.25 })];
  expect(step.value).toEqual({ speeds: [1, 4], before: 161, after });
});

it("does not change the graph", () => {
  const edit = editOf(graph, controls, { loader: 0 });
  expect([graph.weight[0], edit.weight[0]]).toEqual([100, 40]);
});

it("divides the time by precedence, without a gap", () => {
  const event = Int32Array.from([0, 2, 4, 6]);
  const eventPart = Uint8Array.from([0, 1, 2, 1]);
  // compute 10 to 30, communication 20 to 50 and 70 to 71, a copy 40 to 60, to 100 nothing
  const time = Float64Array.from([10, 30, 20, 50, 40, 60, 70, 71]);
  const parts = new Parts({ event, eventPart }, time);
  expect(parts.of(time, 100)).toEqual([20, 21, 10, 49]);
  expect(parts.of(new Float64Array(8), 0)).toEqual([0, 0, 0, 0]);
  // an edit changes the order: the copy runs first, then communication, compute last
  expect(parts.of(Float64Array.from([80, 90, 20, 50, 0, 25, 50, 51]), 100)).toEqual([10, 31, 20, 39]);
  expect(new Parts({ event: new Int32Array(), eventPart: new Uint8Array() }, time).of(time, 9)).toEqual([
    0, 0, 0, 9,
  ]);
});

it("sorts what an edit has turned round", () => {
  const count = 500; // events back to back, recorded in the order in which the replay has them last
  const event = Int32Array.from({ length: count }, (_, i) => 2 * i);
  const time = (start: (i: number) => number) =>
    Float64Array.from({ length: 2 * count }, (_, node) => start(node >> 1) + (node & 1));
  const parts = new Parts(
    { event, eventPart: new Uint8Array(count) },
    time((i) => 2 * i),
  );
  expect(
    parts.of(
      time((i) => 2 * (count - i)),
      2000,
    ),
  ).toEqual([500, 0, 0, 1500]);
});
