import { describe, expect, it } from "vitest";
import { decodePath } from "../../src/timeline/decode";
import type { Layout } from "../../src/timeline/layout";
import type { Palette } from "../../src/timeline/palette";
import { CriticalPath } from "../../src/timeline/path";
import { drawPath } from "../../src/timeline/pathline";
import type { Outline } from "../../src/timeline/types";
import { pen } from "./pen";

const outline: Outline = {
  n: 0,
  mode: "client",
  extent: [0, 1000],
  ranks: [{ rank: 0, label: "0" }],
  tracks: [
    {
      rank: 0,
      kind: "stream",
      label: "GPU 0 stream 7",
      process: "GPU 0",
      alike: "stream 7",
      first: 0,
      sizes: [1],
    },
    {
      rank: 0,
      kind: "thread",
      label: "main",
      process: "process 1",
      alike: "threads",
      first: 1,
      sizes: [1, 1],
    },
  ],
  names: ["gemm", "aten::mm", "forward"],
  categories: [""],
  category_of: [0, 0, 0],
  class_of: [0, 5, 7],
  iterations: [],
  activity: [[]],
};

/** What pack_path writes: columns of fixed width, the integers byte-shuffled. */
function packed(segments: number[][]): Uint8Array {
  const n = segments.length;
  const bytes = new Uint8Array(n * (8 + 8 + 4 * 3 + 2));
  const column = (at: number) => segments.map((segment) => segment[at] as number);
  bytes.set(new Uint8Array(Float64Array.from(column(0)).buffer), 0);
  bytes.set(new Uint8Array(Float64Array.from(column(1)).buffer), 8 * n);
  for (let i = 0; i < 3; i++) {
    const plain = new Uint8Array(Int32Array.from(column(2 + i)).buffer);
    for (let byte = 0; byte < 4 * n; byte++)
      bytes[16 * n + 4 * n * i + (byte % 4) * n + (byte >> 2)] = plain[byte] as number;
  }
  bytes.set(column(5), 28 * n);
  bytes.set(column(6), 29 * n);
  return bytes;
}

// start, end, lane, slice, kind, limit, special
const path = decodePath(
  packed([
    [0, 100, 1, -1, 2, 0, 4],
    [100, 300, 2, 5, 1, 0, 0],
    [300, 350, 0, 9, 0, 1, 1],
    [350, 900, 0, 9, 0, 2, 2],
  ]),
  { n: 4, limits: ["cpu_bound", "kernel_launch_overhead", "gpu_compute_bound"], message: "" },
);

describe("critical path", () => {
  const shown = new CriticalPath(path, outline);

  it("is read as it was written", () => {
    expect([...path.lane]).toEqual([1, 2, 0, 0]);
    expect([...path.id]).toEqual([-1, 5, 9, 9]);
    expect([...path.end]).toEqual([100, 300, 350, 900]);
  });

  it("lights up the parts of slices, not the waits", () => {
    const { base } = shown.levels;
    expect([...base.start]).toEqual([350, 100]);
    expect([...base.dur]).toEqual([550, 200]);
    expect([...base.first]).toEqual([0, 1, 1]);
    expect([...base.last]).toEqual([1, 1, 2]);
  });

  it("says what bounds a segment", () => {
    const words = (lane: number, t: number) => shown.describe(shown.at(lane, t)).join("; ");
    expect(words(0, 320)).toContain("bound by the delay of a launch; before gemm begins");
    expect(words(0, 500)).toContain("bound by a compute kernel (inferred)");
    expect(words(1, 50)).toContain("nothing recorded on the thread, in forward");
    expect(shown.at(1, 100)).toBe(-1);
    expect(shown.at(2, 320)).toBe(-1);
  });
});

it("is drawn from edge to edge of a view, without an upright side where it goes on", () => {
  const filled: number[][] = [];
  const context = pen((name: string, ...box: number[]) => {
    if (name === "fillRect") filled.push(box);
  });
  const place = { view: { t0: 200, t1: 600 }, gutter: 100, width: 1100, height: 400, scroll: 0 };
  const rows = [0, 1, 2].map((lane) => ({ lane, y: 100 * lane, h: 20, rank: 0 }));
  drawPath(context, place, { rows } as unknown as Layout, new CriticalPath(path, outline), {} as Palette);
  const edges = (wide: boolean) => {
    const boxes = filled.filter(([, , width = 0]) => width > 10 === wide);
    const found = boxes.flatMap(([x = 0, , width = 0]) => (wide ? [x, x + width] : [x]));
    return [...new Set(found)].filter((x) => x > 98 && x < 1100).sort((a, b) => a - b);
  };
  expect(edges(true)).toEqual([350, 475]); // a frame, a wait, a frame
  expect(edges(false)).toEqual([348, 350, 475]); // where frames end and begin, and from lane to lane
  expect(filled.some(([x = 0, , width = 0]) => x < 100 && x + width === 350)).toBe(true);
  expect(filled.some(([x = 0, , width = 0]) => x === 475 && x + width > 1100)).toBe(true);
});
