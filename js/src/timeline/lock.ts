// Timelines of several runs that move together: the same ns per pixel, one centre, one cursor.
//
// The kernel knows which instants correspond. It is queried once for a stretch of time, one request at a time; until it
// has answered, and where it cannot, the starts of the steps correspond.

import { type Aligned, carry, holding, type Rows } from "./aligned";
import type { IterationInfo, View } from "./types";

const ANSWERS_KEPT = 64;
const ROUNDS = 4;

/** A timeline as the lock sees it. */
export interface Linked {
  readonly view: View;
  readonly outline: { extent: readonly [number, number] };
  /** width of its lanes */
  readonly pixels: number;
  /** how far the view may go; the timeline's own extent while it is not locked */
  bounds: readonly [number, number];
  bands(): readonly Pick<IterationInfo, "start">[];
  /** Show this view without moving any other timeline. */
  follow(view: View): void;
  /** Draw the others' cursor. */
  point(t: number | null): void;
}

/** Fetch the instants that correspond to those of `run` in its view. */
export type FetchAligned = (run: number, view: View, signal: AbortSignal) => Promise<Aligned>;

export class Lock {
  #timelines = new Map<number, Linked>();
  #known: Aligned[] = [];
  #request: AbortController | null = null;
  #on = false;
  /** the kernel cannot answer: no further requests */
  #failed = false;
  /** the run that was moved last */
  #leader = 0;
  /** until any is moved, all of every run is in sight */
  #moved = false;

  constructor(
    private readonly fetchAligned: FetchAligned,
    /** called with the reason why the kernel cannot answer, or "" */
    private readonly refused: (why: string) => void,
  ) {}

  add(run: number, timeline: Linked): void {
    this.#timelines.set(run, timeline);
    if (!this.#timelines.has(this.#leader)) this.#leader = run;
    this.#spread();
  }

  /** Locked, they take the view of the one that was moved last; unlocked, each stays as it is. */
  set(on: boolean): void {
    this.#on = on;
    if (on) {
      this.#spread();
      return;
    }
    this.#request?.abort();
    this.#request = null;
    for (const timeline of this.#timelines.values()) {
      timeline.bounds = timeline.outline.extent;
      timeline.point(null);
    }
  }

  /** Drop the known instants, as others correspond from now on. Nothing moves until those are known. */
  forget(): void {
    this.#request?.abort();
    this.#request = null;
    this.#known = [];
    this.#failed = false;
    this.refused("");
    this.#learn();
  }

  /** The run's timeline was moved by hand, or from Python. */
  moved(run: number): void {
    this.#leader = run;
    this.#moved = true;
    this.#spread();
  }

  /** The pointer is at `t` of the run, or on none of its times. */
  pointed(run: number, t: number | null): void {
    const from = this.#timelines.get(run);
    if (!this.#on || !from) return;
    const rows = this.#rows(run, centreOf(from.view));
    for (const [other, timeline] of this.#timelines)
      if (other !== run) timeline.point(t === null ? null : carried(rows, run, other, t));
  }

  #spread(): void {
    const leader = this.#timelines.get(this.#leader);
    if (!this.#on || !leader || this.#timelines.size < 2) return;
    let rows = this.#bound(leader);
    // What is in sight of the others depends on the centre, which moves with what is in sight of the leader.
    for (let again = 0; again < ROUNDS && !this.#moved; again++) {
      const [first, last] = leader.bounds;
      leader.follow({ t0: first, t1: last });
      rows = this.#bound(leader);
    }
    const { t0, t1 } = leader.view;
    const centre = centreOf(leader.view);
    for (const [run, timeline] of this.#timelines) {
      if (timeline === leader) continue;
      const wider = leader.pixels > 0 && timeline.pixels > 0 ? timeline.pixels / leader.pixels : 1;
      const half = ((t1 - t0) / 2) * wider;
      const at = carried(rows, this.#leader, run, centre);
      timeline.follow({ t0: at - half, t1: at + half });
    }
    this.#learn();
  }

  /** Fetch what corresponds to the leader's view, unless it is known. */
  #learn(): void {
    const leader = this.#timelines.get(this.#leader);
    if (!this.#on || !leader || this.#timelines.size < 2) return;
    if (!holding(this.#known, this.#leader, centreOf(leader.view)))
      void this.#fetch(this.#leader, leader.view);
  }

  /** Bound every view by the run that reaches furthest on either side of the centre: all share one scale. */
  #bound(leader: Linked): Rows {
    const rows = this.#rows(this.#leader, centreOf(leader.view));
    const centres = [...this.#timelines].map(
      ([run, timeline]) => [timeline, carried(rows, this.#leader, run, centreOf(leader.view))] as const,
    );
    const before = Math.max(...centres.map(([{ outline }, at]) => at - outline.extent[0]));
    const after = Math.max(...centres.map(([{ outline }, at]) => outline.extent[1] - at));
    for (const [timeline, at] of centres) timeline.bounds = [at - before, at + after];
    return rows;
  }

  #rows(run: number, centre: number): Rows {
    return holding(this.#known, run, centre)?.rows ?? this.#steps(run, centre);
  }

  /** Where nothing better is known: the start of the step at `centre` and those of the others' steps of that number. */
  #steps(run: number, centre: number): Rows {
    const bands = this.#timelines.get(run)?.bands() ?? [];
    const step = Math.max(0, bands.filter((band) => band.start <= centre).length - 1);
    const rows: Float64Array[] = [];
    for (const [other, timeline] of this.#timelines) {
      const others = timeline.bands();
      const band = bands.length ? (others[step] ?? others.at(-1)) : undefined;
      rows[other] = Float64Array.of(band?.start ?? timeline.outline.extent[0]);
    }
    return rows;
  }

  async #fetch(run: number, view: View): Promise<void> {
    if (this.#request || this.#failed) return;
    const request = new AbortController();
    this.#request = request;
    try {
      this.#known.unshift(await this.fetchAligned(run, view, request.signal));
      this.#known.length = Math.min(this.#known.length, ANSWERS_KEPT);
    } catch (error) {
      if (request.signal.aborted || error instanceof DOMException) return;
      this.#failed = true;
      this.refused(error instanceof Error ? error.message : String(error));
    }
    if (this.#request !== request) return;
    this.#request = null;
    this.#spread(); // by the answer, or on to where they were moved meanwhile
  }
}

function carried(rows: Rows, from: number, to: number, t: number): number {
  const [source, target] = [rows[from], rows[to]];
  return source?.length && target?.length ? carry(source, target, t) : t;
}

function centreOf({ t0, t1 }: View): number {
  return (t0 + t1) / 2;
}
