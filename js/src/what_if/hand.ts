// What the sliders say, and the answer to it: from the browser while the hand moves, from the kernel when it rests.

import { computed, effect, signal as makeSignal, type ReadonlySignal, type Signal } from "@preact/signals";
import { type Model, trait } from "../model";
import { onAbort } from "../page";
import { type Answer, type Link, Replay, type SpeedMap, type Whole } from "../replay/answer";
import type { Control, Settings } from "../replay/controls";
import { unpack } from "../replay/graph";
import type { Rpc } from "../rpc";
import { inflate } from "../timeline/decode";
import { inPieces } from "./pieces";

const REST_MS = 250; // without a move, the hand rests
const SPEED_DIGITS = 3;

/** Facts about the replay, whatever the edits are. */
export interface About {
  rank?: number;
  /** what is timed if all ranks are replayed together; no rank is chosen then */
  job?: string;
  /** tells one graph from another */
  graph: number;
  nodes: number;
  /** the browser may replay it */
  live: boolean;
  model_error_pct: number;
  inferred: number;
  edges: number;
  /** of host and device in the map */
  speeds: number[];
}

export interface Hand {
  settings: ReadonlySignal<Settings>;
  /** the edits that no slider makes */
  further: Signal<string[]>;
  /** what is shown: of the browser if it can, else the kernel's last answer */
  whole: ReadonlySignal<Whole | null>;
  chain: ReadonlySignal<Link[]>;
  /** the time at other speeds of host and device; null where it is not known */
  map: ReadonlySignal<SpeedMap | null>;
  /** has the kernel make the map; null where the browser does, or nothing can */
  askMap: ReadonlySignal<(() => void) | null>;
  /** the kernel is at it */
  mapping: ReadonlySignal<boolean>;
  /** the browser answers */
  live: ReadonlySignal<boolean>;
  /** what is shown answers what the sliders said before */
  stale: ReadonlySignal<boolean>;
  /** the kernel's last answer */
  known: ReadonlySignal<Answer | null>;
  /** the same if it is to these settings, else null */
  confirmed: ReadonlySignal<Answer | null>;
  /** a report: nothing else than the browser answers */
  frozen: boolean;
  /** something answers a change, once edits that no slider makes are dropped */
  answers: ReadonlySignal<boolean>;
  /** the sliders can be moved */
  ready: ReadonlySignal<boolean>;
  move(control: Control, time: number): void;
  /** forget all changes */
  reset(): void;
  /** tell the kernel now */
  commit(): void;
}

export function follow(model: Model, rpc: Rpc, signal: AbortSignal): Hand {
  const saved = trait<Settings>(model, "settings", signal);
  const further = trait<string[]>(model, "further", signal);
  const answer = trait<Partial<Answer>>(model, "answer", signal);
  const about = trait<Partial<About>>(model, "about", signal);
  const controls = trait<Control[]>(model, "controls", signal);
  const settings = makeSignal<Settings>(saved.value);
  const replay = makeSignal<Replay | null>(null);
  const own = makeSignal<Whole | null>(null);
  const links = makeSignal<Link[]>([]);
  const ownMap = makeSignal<{ of: Replay; others: Settings; map: SpeedMap } | null>(null);
  const askedMap = makeSignal<{ question: string; map: SpeedMap | null } | null>(null);
  const live = computed(() => replay.value !== null && further.value.length === 0);
  const dead = model.get("no_kernel") === true;
  const frozen = !dead && model.get("frozen") === true;
  const answers = computed(() => !dead && (!frozen || replay.value !== null));

  let resting: ReturnType<typeof setTimeout> | undefined;
  const commit = () => {
    clearTimeout(resting);
    resting = undefined;
    saved.value = settings.value;
  };
  const moved = (next: Settings) => {
    settings.value = next;
    clearTimeout(resting);
    resting = setTimeout(commit, REST_MS);
  };

  const unfollow = effect(() => {
    const given = saved.value;
    if (resting === undefined) settings.value = given;
  });

  let held: string | undefined;
  const unload = effect(() => {
    const { rank, graph, live } = about.value;
    const wanted = `${rank} ${graph}`;
    if (rank === undefined || wanted === held) return;
    held = wanted;
    replay.value = null;
    if (!live || dead) return;
    void fetchGraph(rpc, rank)
      .then((graph) => {
        if (held === wanted && !signal.aborted) replay.value = new Replay(graph, controls.peek());
      })
      .catch(() => undefined); // the kernel answers then
  });

  // A move is answered at once, and those before the next frame together: more answers could not be drawn.
  let frame = 0;
  let moreMoves = false;
  let stop = () => {};
  const respond = () => {
    const now = replay.peek();
    if (!now) return;
    const given = settings.peek();
    moreMoves = false;
    own.value = now.whole(given);
    frame = requestAnimationFrame(() => {
      frame = 0;
      if (moreMoves) return respond();
      // the rest follows when the answer is on the page, piece by piece: the hand may still move
      stop = inPieces(now.chain(given), (found) => {
        links.value = found;
        const others = withoutSpeeds(given);
        const drawn = ownMap.peek();
        if (drawn && drawn.of === now && sameSettings(drawn.others, others)) return;
        stop = inPieces(now.speedMap(others, about.peek().speeds ?? []), (map) => {
          ownMap.value = { of: now, others, map };
        });
      });
    });
  };
  const unreplay = effect(() => {
    const [now] = [replay.value, settings.value];
    stop();
    moreMoves = frame > 0;
    if (!now) own.value = null;
    else if (!moreMoves) respond();
  });

  onAbort(signal, () => {
    for (const dispose of [unfollow, unload, unreplay]) dispose();
    cancelAnimationFrame(frame);
    stop();
    clearTimeout(resting);
  });

  const known = computed(() => (answer.value.settings ? (answer.value as Answer) : null));
  const confirmed = computed(() => {
    const { value } = known;
    const same = value && sameSettings(value.settings, settings.value);
    return same && String(value.further) === String(further.value) ? value : null;
  });
  const mapQuestion = computed(() =>
    JSON.stringify([about.value.rank, about.value.graph, withoutSpeeds(settings.value), further.value]),
  );
  const ask = () => {
    const question = mapQuestion.peek();
    const { rank, speeds = [] } = about.peek();
    const answered = (map: SpeedMap | null) => {
      if (askedMap.peek()?.question === question) askedMap.value = map && { question, map };
    };
    commit();
    askedMap.value = { question, map: null };
    rpc
      .call<Omit<SpeedMap, "speeds">>("speed_map", { rank })
      .then(({ result }) => answered({ ...result, speeds }))
      .catch(() => answered(null));
  };
  const asked = computed(() => (askedMap.value?.question === mapQuestion.value ? askedMap.value : null));
  return {
    settings,
    further,
    map: computed(() => (live.value ? (ownMap.value?.map ?? null) : (asked.value?.map ?? null))),
    askMap: computed(() => (live.value || frozen || dead ? null : ask)),
    mapping: computed(() => asked.value?.map === null),
    live,
    whole: computed(() => (live.value && own.value) || known.value),
    chain: computed(() => (live.value ? links.value : (known.value?.chain ?? []))),
    stale: computed(() => !live.value && !confirmed.value),
    known,
    confirmed,
    frozen,
    answers,
    ready: computed(() => answers.value && known.value !== null && (!frozen || live.value)),
    move({ name, speed }, time) {
      const { [name]: _, ...others } = settings.value;
      moved(time === 1 ? others : { ...others, [name]: speed ? roundedSpeed(time) : time });
    },
    reset() {
      settings.value = {};
      further.value = [];
      commit();
    },
    commit,
  };
}

/** A time whose reciprocal, the speed, has few digits: `kernels(1.82)` reads better than `kernels(1.8181818)`. */
function roundedSpeed(time: number): number {
  return time === 0 ? 0 : 1 / Number((1 / time).toPrecision(SPEED_DIGITS));
}

/** The settings of what the map does not vary. */
function withoutSpeeds({ host: _host, kernels: _kernels, ...others }: Settings): Settings {
  return others;
}

function sameSettings(one: Settings, two: Settings): boolean {
  const names = Object.keys(one);
  return names.length === Object.keys(two).length && names.every((name) => one[name] === two[name]);
}

async function fetchGraph(rpc: Rpc, rank: number) {
  const parts: DataView[] = [];
  for (let chunk = 0, chunks = 1; chunk < chunks; chunk++) {
    const { result, buffers } = await rpc.call<{ chunks: number }>("graph", { rank, chunk });
    chunks = result.chunks;
    parts.push(...buffers);
  }
  return unpack(await inflate(parts));
}
