// @vitest-environment node
// A trace too large for the browser, which a kernel answers window by window.

import { expect, it, vi } from "vitest";
import { KernelSource } from "../../src/timeline/kernel";
import type { Choice } from "../../src/timeline/matches";
import type { Outline } from "../../src/timeline/types";
import { shuffled } from "./two_ranks";

const EXTENT: [number, number] = [0, 1_024_000];
const outline = {
  n: 90,
  extent: EXTENT,
  tracks: [
    { first: 0, sizes: [60] },
    { first: 1, sizes: [30] },
  ],
};
const KINDS = 2;

interface Asked {
  t0: number;
  t1: number;
  px: number;
  lanes: number[];
  chunk: number;
}

/** What pack_window writes of one item on each lane, in the middle of the window; its id says which window it is. */
async function packed({ t0, t1, lanes }: Asked, id: number) {
  const n = lanes.length;
  const at = Math.floor((t0 + t1) / 2);
  const bytes = Uint8Array.from([
    ...shuffled(
      lanes.map(() => at - t0),
      4,
    ),
    ...shuffled(
      lanes.map(() => 10),
      4,
    ),
    ...shuffled(
      lanes.map((_, i) => i % KINDS),
      2,
    ),
    ...shuffled(
      lanes.map(() => id),
      4,
    ),
    ...shuffled(
      lanes.map(() => 1),
      4,
    ),
    ...lanes.map(() => 1),
    ...lanes.map(() => 255),
  ]);
  const stream = new Blob([bytes]).stream().pipeThrough(new CompressionStream("deflate"));
  const data = new Uint8Array(await new Response(stream).arrayBuffer());
  const layout = { n, origin: t0, gap_escapes: 0, dur_escapes: 0, kind_bytes: 2, sizes: lanes.map(() => 1) };
  return { layout, data };
}

/** A source, what its kernel was asked for, and how the kernel comes to answer, one question after the other. */
function opened() {
  const asked: { method: string; params: Asked }[] = [];
  const waiting: (() => void)[] = [];
  let windows = 0;
  const changed = vi.fn();
  const answers: Record<string, unknown> = {};
  const call = async (method: string, params: object) => {
    const given = params as Asked;
    asked.push({ method, params: given });
    if (method !== "window") return { result: answers[method], buffers: [] };
    if (given.chunk === 0) {
      windows += 1;
      await new Promise<void>((resolve) => waiting.push(resolve));
    }
    const { layout, data } = await packed(given, windows);
    const half = Math.ceil(data.length / 2);
    const part = given.chunk ? data.subarray(half) : data.subarray(0, half);
    return { result: { ...layout, chunks: 2 }, buffers: [new DataView(part.slice().buffer)] };
  };
  const source = new KernelSource(outline as unknown as Outline, call as never, changed);
  const answer = async () => {
    const before = changed.mock.calls.length;
    waiting.shift()?.();
    await vi.waitFor(() => expect(changed.mock.calls.length).toBeGreaterThan(before));
    await new Promise((resolve) => setTimeout(resolve));
  };
  const overview = async () => {
    const done = source.overview();
    await answer();
    await done;
  };
  const asks = () => asked.filter(({ method, params }) => method === "window" && !params.chunk);
  return { source, asked, answers, answer, overview, asks, waiting };
}

/** Which window the items are of. */
const drawn = (source: KernelSource, t0: number, t1: number, lanes = [0, 1]) =>
  source.items(t0, t1, 1000, lanes)?.id?.[0];

it("has the whole coarsely, and asks for what is in view with as much on both sides", async () => {
  const { source, overview, answer, asks } = opened();
  expect(drawn(source, 0, 1_024_000)).toBeUndefined();
  await answer();
  await overview();
  expect(drawn(source, 100_000, 164_000)).toBe(2); // the overview, until something better is there
  expect(asks().map(({ params }) => params)).toEqual([
    { t0: 0, t1: 1_024_000, px: 1000, lanes: [0, 1], chunk: 0 },
    { t0: 0, t1: 1_024_000, px: 1000, lanes: [0, 1], chunk: 0 },
    { t0: 36_000, t1: 228_000, px: 3000, lanes: [0, 1], chunk: 0 },
  ]);
  await answer();
  expect(drawn(source, 100_000, 164_000)).toBe(3);
  expect(drawn(source, 164_000, 228_000)).toBe(3); // it reaches that far
  expect(asks()).toHaveLength(3);
  expect(drawn(source, 165_000, 229_000)).not.toBe(3);
  expect(asks()).toHaveLength(4);
});

it("asks anew for other lanes and for another resolution", async () => {
  const { source, overview, answer, asks } = opened();
  await overview();
  drawn(source, 100_000, 164_000, [0]);
  await answer();
  drawn(source, 100_000, 164_000, [0, 1]);
  await answer();
  expect(drawn(source, 116_000, 148_000)).toBe(3); // coarser, until the answer is there
  await answer();
  expect(drawn(source, 116_000, 148_000)).toBe(4);
  expect(drawn(source, 52_000, 180_000)).toBe(1); // what is sharper would be more than pixels
  expect(asks().map(({ params }) => params.lanes.length)).toEqual([2, 1, 2, 2, 2]);
});

it("has one question under way, and then asks only the newest of those that came up", async () => {
  const { source, overview, answer, asks, waiting } = opened();
  await overview();
  for (const t0 of [0, 100_000, 200_000, 300_000]) drawn(source, t0, t0 + 8_000);
  expect([asks().length, waiting.length]).toEqual([2, 1]);
  await answer();
  expect(asks().at(-1)?.params.t0).toBe(292_000);
  await answer();
  expect(asks()).toHaveLength(3);
});

it("keeps what was looked at last, and the whole for ever", async () => {
  const { source, overview, answer, asks } = opened();
  await overview();
  const look = async (at: number) => {
    const before = asks().length;
    drawn(source, 40_000 * at, 40_000 * at + 8_000);
    if (asks().length > before) await answer();
    return asks().length > before;
  };
  for (let at = 1; at <= 15; at++) expect(await look(at)).toBe(true);
  expect(await look(1)).toBe(false); // and it is the newest now
  expect(await look(16)).toBe(true); // in place of the second
  expect(await look(1)).toBe(false);
  expect(await look(2)).toBe(true);
  expect(drawn(source, 0, 1_024_000)).toBe(1);
});

it("knows gaps only where something is loaded", async () => {
  const { source, overview } = opened();
  await overview();
  expect(source.knownGap([0], 0)).toBeNull(); // nothing is drawn
  drawn(source, 0, 1_024_000);
  expect(source.knownGap([0, 1], 0)).toEqual([0, 512_000]);
  expect(source.knownGap([0, 1], 600_000)).toEqual([512_010, 1_024_000]);
  expect(source.knownGap([0], 1_024_000)).toBeNull();
  expect(source.knownGap([0, 7], 5)).toBeNull();
});

it("asks for slices, of which there is none outside", async () => {
  const { source, asked, answers } = opened();
  const facts = (id: number, lane: number) => ({ id, lane, start: 5, dur: 1, kind: 0 });
  answers.slice = { slice: facts(59, 0), flows: [[facts(3, 1), facts(59, 0)]] };
  expect(await source.slice(-1)).toBeNull();
  expect(await source.slice(90)).toBeNull();
  expect(asked).toEqual([]);
  expect(await source.neighbour({ ...facts(58, 0), count: 1 }, 1)).toEqual({ ...facts(59, 0), count: 1 });
  expect(asked.at(-1)?.params).toEqual({ id: 59 });
  expect(await source.neighbour({ ...facts(60, 1), count: 1 }, -1)).toBeNull(); // another lane's
  const known = { ...facts(59, 0), count: 1 };
  const flows = [[{ ...facts(3, 1), count: 1 }, known]];
  expect([source.knownFlows(known), await source.flows(known)]).toEqual([flows, flows]);
  const before = asked.length;
  expect(await source.flows(known)).toEqual(flows);
  expect(asked).toHaveLength(before);
});

it("finds chosen slices in what is drawn, and asks for the others", async () => {
  const { source, overview, asked, answers } = opened();
  await overview();
  const place = { start: 7, id: 2 };
  expect([
    source.matchItems(),
    await source.nextMatch(place, 1),
    await source.matchPage("dur", 0, 5),
  ]).toEqual([null, null, []]);
  const choice = {
    names: ["mm"],
    query: "",
    ranks: [0],
    kinds: Uint8Array.from([0, 1]),
  } as unknown as Choice;
  answers.matches = { count: 30, bins: [] };
  expect(await source.choose(choice)).toEqual(answers.matches);
  expect(source.matchItems()).toBeNull(); // nothing is drawn
  drawn(source, 0, 1_024_000);
  expect([...(source.matchItems()?.kind ?? [])]).toEqual([1]);
  expect(source.matchItems()).toBe(source.matchItems());
  answers.match = { slice: null };
  expect(await source.nextMatch(place, -1)).toBeNull();
  expect(asked.at(-1)?.params).toEqual({ names: ["mm"], query: "", ranks: [0], ...place, step: -1 });
});
