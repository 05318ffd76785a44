// A small recording of two ranks: of each a stream in two rows, its synchronisation, a thread of six and annotations.

import type { Items, Outline, TrackInfo } from "../../src/timeline/types";

const SIZES = [[40, 9], [3], [1, 1, 1, 1, 60, 200], [25]];
const KINDS: TrackInfo["kind"][] = ["stream", "sync", "thread", "annotation"];

/** Two ranks with the same lanes; the slices of each lane are as unlike as numbers below a thousand can be. */
const tracks: TrackInfo[] = [0, 3].flatMap((rank) =>
  SIZES.map((sizes, at) => ({
    rank,
    kind: KINDS[at] as TrackInfo["kind"],
    label: `lane ${at} of ${rank}`,
    process: at < 2 ? `GPU ${rank}` : "process 1",
    alike: `lane ${at}`,
    first: (rank ? 9 + 1 : 0) + SIZES.slice(0, at).flat().length,
    sizes,
  })),
);
const lanes = tracks.flatMap(({ sizes }) => sizes);
const names = ["aten::mm", "a kernel with a long name<float, 4>", "ncclDevKernel_AllReduce", "Memcpy HtoD"];

export function slices(): Items {
  const start: number[] = [];
  const dur: number[] = [];
  const first: number[] = [];
  const last: number[] = [];
  lanes.forEach((size, lane) => {
    first.push(start.length);
    let at = 7 * lane;
    for (let i = 0; i < size; i++) {
      at += (i * 37 + lane * 11) % 90;
      const long = size < 4 ? 2000 : (i * i * 13 + lane) % 61;
      start.push(at);
      dur.push(long);
      at += long;
    }
    last.push(start.length);
  });
  const kind = Uint16Array.from(start, (_, i) => (i * 7) % names.length);
  return {
    start: Float64Array.from(start),
    dur: Float64Array.from(dur),
    kind,
    eventClass: Uint8Array.from(kind, (one) => [5, 0, 1, 2][one] as number),
    id: null,
    count: null,
    busy: null,
    first: Uint32Array.from(first),
    last: Uint32Array.from(last),
  };
}

export const outline: Outline = {
  n: lanes.reduce((sum, size) => sum + size, 0),
  mode: "client",
  extent: [0, 9000],
  ranks: [
    { rank: 0, label: "0" },
    { rank: 3, label: "3" },
  ],
  tracks,
  names,
  categories: ["cpu_op", "kernel", "gpu_memcpy"],
  category_of: [0, 1, 1, 2],
  class_of: [5, 0, 1, 2],
  iterations: [0, 3].flatMap((rank) =>
    [0, 1, 2, 3].map((iteration) => ({
      iteration,
      rank,
      label: `step ${iteration}`,
      start: 300 + 2000 * iteration + 50 * rank,
      end: 2200 + 2000 * iteration + 50 * rank,
    })),
  ),
  activity: [
    Array.from({ length: 60 }, (_, i) => (i % 7) / 6),
    Array.from({ length: 60 }, (_, i) => (i % 5) / 9),
    Array.from({ length: 60 }, (_, i) => (i % 3) / 3),
  ],
  doubtful: [
    { rank: 0, lane: 0, start: 400, dur: 300, reason: "ends late" },
    { rank: 3, lane: null, start: 2300, dur: 1900, reason: "lost" },
  ],
};

/** As `shuffled` in hta_widgets/timeline/pack.py. */
export function shuffled(values: ArrayLike<number>, size: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(values.length * size);
  for (let i = 0; i < values.length; i++)
    for (let plane = 0; plane < size; plane++)
      out[plane * values.length + i] = Math.floor((values[i] as number) / 256 ** plane) & 255;
  return out;
}
