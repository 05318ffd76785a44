// @vitest-environment jsdom

import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { BrushWords } from "../../src/timeline/brush_words";
import type { Source } from "../../src/timeline/source";
import type { Outline } from "../../src/timeline/types";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => vi.useRealTimers());

it("asks at once, then rests four times as long as an answer took, and asks of the newest window", async () => {
  const asked: [number, number][] = [];
  const sums = (t0: number) =>
    new Promise((resolve) => {
      asked.push([performance.now(), t0]);
      setTimeout(() => resolve({ slices: 0, busy: [], longest: [] }), 100);
    });
  const outline = { names: [], ranks: [], tracks: [] } as unknown as Outline;
  const end = new AbortController();
  const told: unknown[] = [];
  const words = new BrushWords(
    outline,
    { sums } as unknown as Source,
    (facts) => told.push(facts),
    end.signal,
  );
  const tell = (t0: number) => words.tell([t0, 100], [0], { x: 0, width: 100, height: 100, colour: "" });
  const begun = performance.now();
  tell(1);
  await vi.advanceTimersByTimeAsync(50);
  tell(2);
  tell(3);
  await vi.advanceTimersByTimeAsync(100 + 400);
  expect(asked.map(([at, t0]) => [at - begun, t0])).toEqual([
    [0, 1],
    [100 + 400, 3],
  ]);
  expect(told).toHaveLength(0); // what is known is of a window that was brushed before
  await vi.advanceTimersByTimeAsync(100);
  expect(told).toHaveLength(1); // of the window that is still brushed
  tell(4);
  end.abort();
  await vi.advanceTimersByTimeAsync(1000);
  expect(asked).toHaveLength(2);
});
