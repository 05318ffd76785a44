// @vitest-environment node

import { describe, expect, it } from "vitest";
import { type Counter, Counters, valuesIn, valueText } from "../../src/timeline/counters";
import { ALL_LANES } from "../../src/timeline/lane_choice";
import { arrange, scrolled } from "../../src/timeline/layout";
import type { Outline } from "../../src/timeline/types";

const counter = (more: Partial<Counter>): Counter => ({
  rank: 0,
  name: "queue length",
  key: "stream 7",
  unit: "launches",
  lane: -1,
  least: 0,
  most: 9,
  bottom: 0,
  top: 9,
  ...more,
});

/** As Python packs it: byte planes, deflated. */
async function packed(columns: number[][]): Promise<DataView> {
  const bytes = columns.flatMap((column) => {
    const plain = new Uint8Array(Float64Array.from(column).buffer);
    return Array.from({ length: 8 }, (_, plane) =>
      column.map((_, i) => plain[8 * i + plane] as number),
    ).flat();
  });
  const stream = new Blob([Uint8Array.from(bytes)]).stream().pipeThrough(new CompressionStream("deflate"));
  return new DataView(await new Response(stream).arrayBuffer());
}

const queue = counter({});
const memory = counter({ name: "allocated memory", key: "cuda:0", unit: "bytes" });

/** A kernel whose counters are 1 at an even ns and 2 at an odd one. */
function kernel(extent: [number, number]) {
  const asked: { t0: number; t1: number; px: number }[] = [];
  let drawn = 0;
  const counters = new Counters(
    extent,
    async (method: string, params: object) => {
      if (method === "counter_list") return { result: { counters: [queue, memory] } as never, buffers: [] };
      const { t0, t1, px, counters } = params as (typeof asked)[number] & { counters: unknown[] };
      asked.push({ t0, t1, px });
      const step = (t1 - t0) / px;
      const at = (i: number) => 1 + (Math.floor(t0 + i * step) % 2);
      const columns = counters.flatMap(() => [
        Array.from({ length: px }, (_, i) => (step > 1 ? 1 : at(i))),
        Array.from({ length: px }, (_, i) => (step > 1 ? 2 : at(i))),
      ]);
      return { result: { t0, t1, px, chunks: 1 } as never, buffers: [await packed(columns)] };
    },
    () => {
      drawn++;
    },
  );
  const settled = async (n: number) => {
    while (drawn < n) await new Promise((resolve) => setTimeout(resolve));
  };
  return { counters, asked, settled };
}

describe("counters", () => {
  it("are asked for as sharp as the screen, and wider than it", async () => {
    const { counters, asked, settled } = kernel([0, 4096]);
    await counters.list([]);
    expect(counters.known.value).toEqual([queue, memory]);
    expect(counters.at({ t0: 1024, t1: 2048 }, 1024, [queue])).toBeNull();
    await settled(1);
    expect(asked).toEqual([{ t0: 0, t1: 3072, px: 3072 }]);
    const loaded = counters.at({ t0: 1024, t1: 2048 }, 1024, [queue]);
    expect(loaded && valuesIn(loaded, queue, 1500, 1501)).toEqual([1, 1]);
    expect(loaded && valuesIn(loaded, queue, 1501, 1502)).toEqual([2, 2]);
    expect(loaded && valuesIn(loaded, queue, 1500, 1502)).toEqual([1, 2]);
    expect(loaded && valuesIn(loaded, queue, 3072, 3080)).toBeNull();
    expect(loaded && valuesIn(loaded, memory, 1500, 1501)).toBeNull();
    counters.at({ t0: 1500, t1: 1600 }, 100, [queue]);
    expect(asked).toHaveLength(1); // it is at hand
  });

  it("are drawn coarsely until the sharper values have come", async () => {
    const { counters, asked, settled } = kernel([0, 1 << 20]);
    await counters.list([]);
    counters.at({ t0: 0, t1: 1 << 20 }, 1024, [queue, memory]);
    await settled(1);
    const near = { t0: 5000, t1: 6024 };
    expect(counters.at(near, 1024, [queue])?.px).toBe(1024);
    await settled(2);
    expect(asked[1]).toEqual({ t0: 3976, t1: 7048, px: 3072 });
    expect(counters.at(near, 1024, [queue])?.px).toBe(3072);
  });

  it("say what they count", () => {
    expect(valueText(queue, 1)).toBe("1 launch");
    expect(valueText(memory, 2 ** 31)).toBe("2.00 GiB");
    expect(valueText(counter({ unit: "GB/s" }), 17.5)).toBe("17.5 GB/s");
    expect(valueText(counter({ unit: "%" }), 12)).toBe("12.0 %");
    expect(valueText(counter({ unit: "" }), -3)).toBe("−3");
  });

  it("stand under the lanes of their stream, those of a rank under its device", () => {
    const outline: Outline = {
      n: 0,
      mode: "client",
      extent: [0, 100],
      ranks: [{ rank: 0, label: "0" }],
      tracks: [
        {
          rank: 0,
          kind: "stream",
          label: "stream 7",
          process: "GPU 0",
          alike: "stream 7",
          first: 0,
          sizes: [5],
        },
        {
          rank: 0,
          kind: "stream",
          label: "stream 8",
          process: "GPU 0",
          alike: "stream 8",
          first: 1,
          sizes: [5],
        },
        {
          rank: 0,
          kind: "thread",
          label: "main",
          process: "process 1",
          alike: "threads",
          first: 2,
          sizes: [5],
        },
      ],
      names: [],
      categories: [],
      category_of: [],
      class_of: [],
      iterations: [],
      activity: [[]],
    };
    const open = { collapsed: new Set<string>(), unfolded: new Set<number>() };
    const of7 = counter({ lane: 0 });
    const pinned: [number, string][] = [];
    const layout = arrange(outline, [], open, { ...ALL_LANES, pinned }, [memory, of7]);
    const heights = [
      ...layout.rows.map(({ lane, y }) => [y, lane]),
      ...layout.counters.map(({ counter, y }) => [y, counter.key]),
    ];
    expect(heights.sort(([a], [b]) => (a as number) - (b as number)).map(([, what]) => what)).toEqual([
      0,
      "stream 7",
      1,
      "cuda:0",
      2,
    ]);
    const filtered = arrange(outline, [], open, { ...ALL_LANES, filter: "stream 8", pinned }, [memory, of7]);
    expect(filtered.counters).toEqual([]);
    const collapsed = arrange(outline, [], { ...open, collapsed: new Set(["Rank 0"]) }, undefined, [
      memory,
      of7,
    ]);
    expect(collapsed.counters).toEqual([]);
    const withPin = arrange(outline, [], open, { ...ALL_LANES, pinned: [[0, "stream 7"]] }, [memory, of7]);
    const [first] = withPin.counters;
    expect(first?.counter).toBe(of7);
    expect(scrolled(withPin, 10).counters[0]?.y).toBe((first?.y ?? 0) + 10);
  });
});
