// What an edit changes, in few numbers: the browser's half of hta_widgets/widgets/what_if_answer.py.

import { type Control, editOf, inUse, type Settings } from "./controls";
import { type Graph, spread } from "./graph";
import { Parts } from "./parts";
import { besideResiduals, ESTIMATE, MOST, PINNED, stretch, times, weights } from "./pass";

/** A time as recorded, and replayed: the estimate between the shortest and the longest; ns. */
export interface Times {
  before: number;
  low: number;
  after: number;
  high: number;
}

/** What the recording takes, or a step, ns. */
export interface Whole extends Times {
  parts_before: number[];
  parts_after: number[];
}

/** One edit, in the greedy order of savings: what the recording takes with it alone, and with those before it; ns. */
export interface Link {
  /** of the control that makes it, empty for an edit that none makes */
  name: string;
  expression: string;
  /** in words, of a change of several ranks */
  label?: string;
  /** it can be had at most in part */
  bound: boolean;
  /** whose colour it takes */
  time_class: string;
  alone: number;
  together: number;
}

/** As the kernel answers. */
export interface Answer extends Whole {
  settings: Settings;
  further: string[];
  chain: Link[];
  /** the mean of the complete iterations, if there are any */
  step: (Whole & { chain: Link[]; count: number; clock: string }) | null;
}

/** What the recording takes for each pair of speeds: all of the device with the first one of the host, and so on; ns. */
export interface SpeedMap {
  speeds: readonly number[];
  before: number;
  after: number[];
}

/** Replays a graph under settings of controls; it keeps its arrays from one answer to the next. */
export class Replay {
  #weight: Float64Array;
  #time: Float64Array;
  #parts: Parts;
  #before: number;
  #partsBefore: number[];

  constructor(
    private readonly graph: Graph,
    private readonly controls: readonly Control[],
  ) {
    this.#weight = new Float64Array(graph.source.length);
    this.#time = new Float64Array(graph.nodes);
    this.#before = this.#extent({}, PINNED);
    this.#parts = new Parts(graph, this.#time);
    this.#partsBefore = this.#parts.of(this.#time, this.#before);
  }

  /** When each node happens, valid until the next question. */
  times(settings: Settings, mode: number): Float64Array {
    this.#extent(settings, mode);
    return this.#time;
  }

  whole(settings: Settings): Whole {
    const { graph } = this;
    const before = this.#before;
    const edit = editOf(graph, this.controls, settings);
    const weight = weights(graph, edit, PINNED, this.#weight);
    const ends: number[] = [];
    if (besideResiduals(graph, edit)) {
      ends.push(times(graph, weight, this.#time));
      const pinned = Float64Array.from(graph.pairEdge, (e) => weight[e] as number);
      stretch(graph, edit, MOST, weight);
      ends.push(times(graph, weight, this.#time));
      spread(weight, graph.pairEdge, pinned);
      stretch(graph, edit, ESTIMATE, weight);
    }
    const after = times(graph, weight, this.#time);
    const parts_after = this.#parts.of(this.#time, after);
    // what can be had only in part may also change nothing
    if (this.controls.some((control) => isBound(control, settings))) ends.push(before);
    return {
      before,
      low: Math.min(after, ...ends),
      after,
      high: Math.max(after, ...ends),
      parts_before: this.#partsBefore,
      parts_after,
    };
  }

  /** The edits that are in use: first what saves most, then what adds most. It yields after each replay. */
  *chain(settings: Settings): Generator<undefined, Link[]> {
    const left = inUse(this.controls, settings);
    const alone = new Map<Control, number>();
    const made: Record<string, number> = {};
    const links: Link[] = [];
    while (left.length) {
      let [best, together] = [0, Number.POSITIVE_INFINITY];
      for (const [i, control] of left.entries()) {
        const { name } = control;
        const time = this.#extent({ ...made, [name]: settings[name] as number }, ESTIMATE);
        if (!links.length) alone.set(control, time);
        if (time < together) [best, together] = [i, time];
        yield;
      }
      const [control] = left.splice(best, 1) as [Control];
      const { name, time_class } = control;
      made[name] = settings[name] as number;
      const bound = isBound(control, settings);
      links.push({ name, expression: "", bound, time_class, alone: alone.get(control) as number, together });
    }
    return links;
  }

  /** The recording on a faster or slower host and with such compute kernels, beside other settings; see `chain`. */
  *speedMap(others: Settings, speeds: readonly number[]): Generator<undefined, SpeedMap> {
    const after: number[] = [];
    for (const host of speeds) {
      for (const device of speeds) {
        after.push(this.#extent({ ...others, host: 1 / host, kernels: 1 / device }, ESTIMATE));
        yield;
      }
    }
    return { speeds, before: this.#before, after };
  }

  #extent(settings: Settings, mode: number): number {
    const edit = editOf(this.graph, this.controls, settings);
    return times(this.graph, weights(this.graph, edit, mode, this.#weight), this.#time);
  }
}

/** Whether a control is in use and can be had at most in part. */
function isBound({ name, bound }: Control, settings: Settings): boolean {
  return bound && settings[name] === 0;
}
