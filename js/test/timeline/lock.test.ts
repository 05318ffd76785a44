// Timelines that move together: which instants correspond, who follows whom, and when the kernel is called.

import { expect, it, vi } from "vitest";
import { RpcError } from "../../src/rpc";
import { type Aligned, carry, decodeAnchors, holding } from "../../src/timeline/aligned";
import { clampView } from "../../src/timeline/camera";
import { type Linked, Lock } from "../../src/timeline/lock";
import type { View } from "../../src/timeline/types";

const f64 = (...values: number[]) => Float64Array.from(values);

it("carries instants linearly between anchors, and at the same speed beyond them", () => {
  const [source, target] = [f64(100, 200, 400), f64(1000, 1300, 1400)];
  expect([100, 150, 200, 300, 400].map((t) => carry(source, target, t))).toEqual([
    1000, 1150, 1300, 1350, 1400,
  ]);
  expect([90, 0, 450].map((t) => carry(source, target, t))).toEqual([990, 900, 1450]);
  for (const t of [50, 123, 256, 500])
    expect(carry(target, source, carry(source, target, t))).toBeCloseTo(t, 9);
  expect(carry(f64(5), f64(70), 9)).toBe(74);
});

it("reads anchors at any offset, and holds them for what was requested", () => {
  const buffer = new ArrayBuffer(8 * 4 + 3);
  new Uint8Array(buffer, 3).set(new Uint8Array(f64(0, 10, 5, 25).buffer));
  const answer = { result: { n: 2, runs: 2, from: 2, to: 8 }, buffers: [new DataView(buffer, 3)] };
  const aligned = decodeAnchors(answer, 0, 9);
  expect(aligned.rows.map((row) => [...row])).toEqual([
    [0, 10],
    [5, 25],
  ]);
  expect([aligned.from, aligned.to]).toEqual([2, 9]);
  expect(holding([aligned], 0, 9.5)).toBeUndefined();
  // the same stretch, seen from the other run
  expect(holding([aligned], 1, 23)).toBe(aligned);
  expect(holding([aligned], 1, 24)).toBeUndefined();
});

class Fake implements Linked {
  bounds: readonly [number, number];
  cursor: number | null = null;
  followed = 0;
  constructor(
    public view: View,
    readonly outline: { extent: [number, number] },
    private readonly starts: number[],
    readonly pixels = 100,
  ) {
    this.bounds = outline.extent;
  }
  bands() {
    return this.starts.map((start) => ({ start }));
  }
  follow(view: View) {
    this.followed += 1;
    this.view = view;
  }
  point(t: number | null) {
    this.cursor = t;
  }
  look(view: View, lock: Lock, run: number) {
    this.view = clampView(view, this.bounds);
    lock.moved(run);
  }
}

interface Question {
  run: number;
  view: View;
  signal: AbortSignal;
  answer(aligned: Aligned): void;
  refuse(error: unknown): void;
}

function page() {
  const requests: Question[] = [];
  const refused = vi.fn();
  const lock = new Lock(
    (run, view, signal) =>
      new Promise((answer, refuse) => {
        requests.push({ run, view, signal, answer, refuse });
      }),
    refused,
  );
  // µs; B's steps begin 1000 later and are twice as long
  const a = new Fake({ t0: 0, t1: 400e3 }, { extent: [0, 400e3] }, [0, 100e3, 200e3, 300e3]);
  const b = new Fake(
    { t0: 1000e3, t1: 1800e3 },
    { extent: [1000e3, 1800e3] },
    [1000e3, 1200e3, 1400e3, 1600e3],
    50,
  );
  lock.add(0, a);
  lock.add(1, b);
  return { lock, a, b, requests, refused };
}

const aligned: Aligned = { rows: [f64(0, 400e3), f64(1000e3, 1800e3)], run: 0, from: 100e3, to: 300e3 };
const settle = () => new Promise((resolve) => setTimeout(resolve, 0));

it("leaves timelines alone until they are locked, and as they are once they are not", () => {
  const { lock, a, b, requests } = page();
  lock.moved(0);
  lock.pointed(0, 50e3);
  expect([b.followed, b.cursor, requests.length]).toEqual([0, null, 0]);
  lock.set(true);
  expect(b.followed).toBe(1);
  lock.pointed(0, 250e3);
  const view = b.view;
  lock.set(false);
  expect(requests[0]?.signal.aborted).toBe(true);
  a.look({ t0: 0, t1: 100e3 }, lock, 0);
  expect([b.view, b.bounds, b.cursor]).toEqual([view, [1000e3, 1800e3], null]);
});

it("shows all of every run until one is moved, and from then on what that one shows", async () => {
  const { lock, a, b, requests } = page();
  lock.set(true);
  expect([a.view, b.view]).toEqual([
    { t0: a.bounds[0], t1: a.bounds[1] },
    { t0: 1200e3, t1: 1600e3 }, // around step 2, on half the pixels
  ]);
  requests[0]?.answer(aligned); // B takes twice the time of A
  await settle();
  expect(a.view).toEqual({ t0: -200e3, t1: 600e3 }); // at one scale, B takes 400 µs on either side
  a.look({ t0: 0, t1: 100e3 }, lock, 0);
  lock.forget();
  requests[1]?.answer(aligned);
  await settle();
  expect(a.view).toEqual({ t0: 0, t1: 100e3 });
});

it("aligns the starts of steps, then by the kernel's answer, with as many ns per pixel", async () => {
  const { lock, a, b, requests } = page();
  lock.set(true);
  a.look({ t0: 210e3, t1: 230e3 }, lock, 0);
  // step 2 begins at 200 and at 1400; B has half the pixels
  expect(b.view).toEqual({ t0: 1415e3, t1: 1425e3 });
  expect(requests).toHaveLength(1);
  requests[0]?.answer(aligned);
  await settle();
  expect(b.view).toEqual({ t0: 1435e3, t1: 1445e3 });
  lock.pointed(0, 225e3);
  expect(b.cursor).toBe(1450e3);
  lock.pointed(0, null);
  expect(b.cursor).toBeNull();
});

it("asks one question at a time, and none where an answer holds", async () => {
  const { lock, a, b, requests } = page();
  lock.set(true);
  for (let t = 200; t < 250; t++) a.look({ t0: (t - 10) * 1e3, t1: (t + 10) * 1e3 }, lock, 0);
  expect(requests).toHaveLength(1);
  requests[0]?.answer(aligned);
  await settle();
  for (let t = 110; t < 290; t++) {
    a.look({ t0: (t - 10) * 1e3, t1: (t + 10) * 1e3 }, lock, 0);
    lock.pointed(0, t * 1e3);
  }
  b.look({ t0: 1290e3, t1: 1310e3 }, lock, 1); // 150 of A
  expect([requests.length, (a.view.t0 + a.view.t1) / 2]).toEqual([1, 150e3]);
  // out of [100, 300]: the question goes out, and what it said when it comes back is where the view is then
  a.look({ t0: 340e3, t1: 360e3 }, lock, 0);
  a.look({ t0: 350e3, t1: 370e3 }, lock, 0);
  expect(requests.map(({ run, view }) => [run, view.t0])).toEqual([
    [0, -200e3], // as far as all of both goes
    [0, 340e3],
  ]);
  requests[1]?.answer({ rows: [f64(300e3, 400e3), f64(1600e3, 1700e3)], run: 0, from: 320e3, to: 355e3 });
  await settle();
  expect(requests).toHaveLength(3);
  expect(requests[2]?.view.t0).toBe(350e3);
});

it("follows any of them without an echo, as far as the longest goes", async () => {
  const { lock, a, b, requests } = page();
  lock.set(true);
  requests[0]?.answer({ ...aligned, from: 0, to: 400e3 });
  await settle();
  expect(a.bounds).toEqual([-200e3, 600e3]);
  const [before, beforeA] = [b.followed, a.followed];
  b.look({ t0: 1700e3, t1: 1800e3 }, lock, 1);
  expect([b.followed - before, a.followed - beforeA]).toEqual([0, 1]);
  expect(a.view).toEqual({ t0: 275e3, t1: 475e3 });
  lock.set(true);
  expect([a.view.t1 - a.view.t0, b.view]).toEqual([200e3, { t0: 1700e3, t1: 1800e3 }]);
});

it("stays at the starts of steps where the kernel cannot say, and asks again for another alignment", async () => {
  const { lock, a, b, requests, refused } = page();
  lock.set(true);
  requests[0]?.refuse(new RpcError("MissingDataError", "no operators"));
  await settle();
  expect(refused).toHaveBeenLastCalledWith("no operators");
  a.look({ t0: 90e3, t1: 110e3 }, lock, 0);
  expect([requests.length, b.view]).toEqual([1, { t0: 1195e3, t1: 1205e3 }]);
  lock.forget();
  expect(refused).toHaveBeenLastCalledWith("");
  expect(requests).toHaveLength(2);
  requests[1]?.answer(aligned);
  await settle();
  const shown = b.view;
  lock.forget(); // earlier answers do not hold any more
  expect(requests).toHaveLength(3);
  expect(b.view).toEqual(shown); // and nothing jumps until something else is known
});
