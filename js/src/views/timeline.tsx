// The view of TimelineScrubber: loads the slices once Python has arranged them, and ties the timeline to the traits.

import { computed, effect, signal as makeSignal, type Signal } from "@preact/signals";
import { render } from "preact";
import { trait, type View, type ViewProps } from "../model";
import { element, onAbort } from "../page";
import { Rpc } from "../rpc";
import { savedState, saveState } from "../saved";
import { adoptStyles } from "../shared";
import { type Edge, Splitter, sizeOf } from "../splitter";
import { Bar, type Times } from "../timeline/bar";
import { frameAround } from "../timeline/camera";
import { ClientSource } from "../timeline/client";
import { Counters } from "../timeline/counters";
import { decodeSlices, type SlicesLayout, unpacked } from "../timeline/decode";
import type { Flag } from "../timeline/flags";
import { type Call, fetchChunks, KernelSource } from "../timeline/kernel";
import { shortName } from "../timeline/labels";
import { hiding, type TrackName } from "../timeline/lane_choice";
import type { Grouping } from "../timeline/lane_groups";
import type { Python } from "../timeline/lane_menu";
import { BUILT, dispatch, MOVED, POINTED } from "../timeline/linking";
import { act } from "../timeline/moves";
import { classLabel } from "../timeline/palette";
import { requestPath } from "../timeline/path_request";
import type { First } from "../timeline/rank_menu";
import { Ranking } from "../timeline/ranking";
import type { Source } from "../timeline/source";
import { GUTTER, Timeline } from "../timeline/timeline";
import css from "../timeline/timeline.css";
import type { Facts } from "../timeline/tooltip";
import type { Outline, Slice } from "../timeline/types";
import { Waits } from "../timeline/waits";
import { visible } from "../visible";

type Window = [number, number] | null;

/** A moving brush or view is sent to Python at most this often. */
const SETTLE_MS = 120;

/** Pixels of a timeline whose height nobody chose, as in Python. */
const USUAL_HEIGHT = 480;

const GUTTER_EDGE: Edge = {
  name: "timeline-gutter",
  label: "Width of the lanes' names",
  of: "width before",
  least: 60,
  usual: GUTTER,
  most: 480,
};

/** The slices are never saved in a notebook: a picture of them is. */
const PICTURE = "_picture";

export const timeline: View = (props: ViewProps) => {
  const { model, el, signal } = props;
  adoptStyles(el, "timeline", css);
  const status = trait<string>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const notice = element("div");
  el.append(notice);
  // of the arrangement that is drawn, and of the one that will take its place once it is loaded
  let drawn: AbortController | undefined;
  let coming: AbortController | undefined;
  onAbort(signal, () => {
    coming?.abort();
    drawn?.abort();
    render(null, notice);
    el.replaceChildren();
  });
  const failed = (error: unknown) => {
    const picture = savedState<string>(model, PICTURE);
    render(
      picture?.startsWith("data:image/") ? (
        <img class="hta-timeline-saved" src={picture} alt="The timeline as it was saved" />
      ) : (
        <Notice status="error" message={error instanceof Error ? error.message : String(error)} />
      ),
      notice,
    );
  };
  const version = trait<number>(model, "version", signal);
  let loaded: number | null = null;
  const dispose = effect(() => {
    render(<Notice status={status.value} message={message.value} />, notice);
    if (status.value !== "idle" || version.value === loaded) return;
    loaded = version.value;
    coming?.abort();
    const next = new AbortController();
    coming = next;
    const takeOver = () => {
      drawn?.abort();
      [drawn, coming] = [next, undefined];
    };
    load({ ...props, signal: next.signal }, notice, takeOver).catch((error) => {
      if (!next.signal.aborted) failed(error);
    });
  });
  onAbort(signal, dispose);
};

function Notice({ status, message }: { status: string; message: string }) {
  if (status === "idle") return null;
  return (
    <div class="hta-notice" data-severity={status === "error" ? "error" : undefined} role="status">
      {message || (status === "busy" ? "Loading" : status)}
      {status === "busy" && (
        <div class="hta-progress" data-unknown>
          <div />
        </div>
      )}
    </div>
  );
}

async function load(props: ViewProps, notice: HTMLElement, takeOver: () => void): Promise<void> {
  const { model, el, signal } = props;
  const rpc = new Rpc(model, signal);
  const call: Call = (method, params) => rpc.call(method, params);
  render(<Notice status="busy" message="Loading slices" />, notice);
  const { chunks } = await fetchChunks<object>(call, "meta");
  const outline: Outline = await unpacked(chunks, (bytes) => JSON.parse(new TextDecoder().decode(bytes)));
  let refresh = () => {};
  const source = await open(outline, call, () => refresh(), signal);
  if (signal.aborted) return;
  render(null, notice);
  takeOver();
  const shown = build(props, rpc, outline, source);
  refresh = () => shown.refresh();
  el.dataset.slices = String(outline.n);
  el.dataset.mode = outline.mode;
  el.dataset.times = outline.replayed ? "what_if" : "recorded";
  el.dataset.ready = "true";
}

async function open(outline: Outline, call: Call, changed: () => void, signal: AbortSignal): Promise<Source> {
  if (outline.mode === "kernel") {
    const source = new KernelSource(outline, call, changed);
    await source.overview();
    return source;
  }
  const { result, chunks } = await fetchChunks<SlicesLayout>(call, "base");
  const { items, flows } = await unpacked(chunks, (bytes) => decodeSlices(bytes, result, outline));
  return new ClientSource(outline, items, flows, signal);
}

function build({ model, el, signal }: ViewProps, rpc: Rpc, outline: Outline, source: Source): Timeline {
  const ranks = trait<number[]>(model, "ranks", signal);
  const iterations = trait<number[]>(model, "iterations", signal);
  const window = trait<Window>(model, "window", signal);
  const view = trait<Window>(model, "view", signal);
  const focusSlice = trait<number>(model, "focus_slice", signal);
  const focusGap = trait<[number, number] | null>(model, "focus_gap", signal);
  const height = trait<number>(model, "height", signal);
  const names = trait<string[]>(model, "names", signal);
  const query = trait<string>(model, "query", signal);
  const onPath = trait<boolean>(model, "critical_path", signal);
  const movedWindow = trait<Window>(model, "moved_window", signal);
  const times = trait<Times>(model, "times", signal);
  const timesNote = trait<string>(model, "times_note", signal);
  const frozen = model.get("frozen") === true; // a report: no kernel answers
  const choice = model.get("switchable") === true && !frozen ? times : null;
  const laneFilter = trait<string | undefined>(model, "lane_filter", signal);
  const pinned = trait<TrackName[] | undefined>(model, "pinned", signal);
  const laneGroups = trait<Grouping | undefined>(model, "lane_groups", signal);
  const laneOrder = trait<TrackName[] | undefined>(model, "lane_order", signal);
  const python = trait<Python>(model, "python", signal);
  const flags = trait<readonly Flag[] | undefined>(model, "flags", signal);
  const counted = trait<string[] | undefined>(model, "counters", signal);
  const firstRanks = trait<First[] | undefined>(model, "first_ranks", signal);
  const addedRanks = trait<number[] | undefined>(model, "added_ranks", signal);
  const everyRank = trait<boolean | undefined>(model, "every_rank", signal);
  // those that are selected; else, of many, those to begin with and those that were added; none means all
  const laneRanks = computed((): readonly number[] => {
    const first = firstRanks.value ?? [];
    if (ranks.value.length || everyRank.value || !first.length) return ranks.value;
    const there = new Set(outline.ranks.map(({ rank }) => rank));
    const some = new Set([...first.map(({ rank }) => rank), ...(addedRanks.value ?? [])]);
    return [...some].filter((rank) => there.has(rank));
  });
  const matches = makeSignal<number | null>(null);
  // made anew for other matches, so that what was listed goes
  const matchList = () => ({
    outline,
    page: (order: "start" | "dur", offset: number, limit: number) => source.matchPage(order, offset, limit),
    go: (slice: Slice) => {
      shown.look(frameAround(slice.start, slice.start + slice.dur, 1.5, shown.bounds));
      void shown.choose(slice, true);
    },
  });
  const list = makeSignal(matchList());

  const bar = element("div");
  const body = element("div");
  const bottom = element("div");
  // a height that the code asks for is not changed by what is remembered
  const edge: Edge = {
    name: height.value === USUAL_HEIGHT ? "timeline-height" : "",
    label: "Height of the timeline",
    of: "height",
    least: 160,
    usual: height.value,
    most: 2000,
  };
  const pixels = sizeOf(edge);
  const gutterWidth = sizeOf(GUTTER_EDGE);
  let asked = height.value;
  const focusLine = element("div", "hta-timeline-focus hta-muted hta-cut");
  focusLine.setAttribute("aria-live", "polite");
  el.append(bar, body, bottom, focusLine);
  onAbort(signal, () => {
    render(null, bottom);
    for (const child of [bar, body, bottom, focusLine]) child.remove();
  });

  const saveWindow = settled(window, signal);
  const saveView = settled(view, signal);
  const saveHeight = settled(height, signal);
  const hint =
    "drag: select · Shift+drag: pan · Ctrl/⌘+wheel: zoom · " +
    "click: details · Shift+click: measure · Esc: clear";
  const announce = (facts: Facts | null) => {
    const line = (name: string) => visible([name, ...(facts?.lines ?? [])].join(" · "));
    focusLine.textContent = facts ? line(shortName(facts.name)) : hint;
    focusLine.title = facts ? line(facts.name) : hint; // the line may be cut
  };
  announce(null);
  const call: Call = (method, params) => rpc.call(method, params);
  const counters = new Counters(outline.extent, call, () => shown.refresh());
  const shown = new Timeline(
    body,
    outline,
    source,
    counters,
    new Waits(outline, call, () => shown.retell()),
    {
      view: ({ t0, t1 }, following) => {
        saveView([Math.round(t0), Math.round(t1)]);
        if (!following) dispatch(el, MOVED);
      },
      pointed: (t) => dispatch(el, POINTED, t),
      window: saveWindow,
      focus: (slice) => {
        focusSlice.value = slice?.id ?? -1;
        if (slice === null) focusGap.value = null;
      },
      gap: (lane, start) => {
        focusGap.value = [lane, start];
      },
      announce,
      flags: (placed) => {
        flags.value = placed;
      },
      pin: ([rank, label]) => {
        const others = (pinned.value ?? []).filter((one) => one[0] !== rank || one[1] !== label);
        const gone = others.length < (pinned.value ?? []).length;
        pinned.value = gone ? others : [...others, [rank, label]];
      },
      hide: (track) => {
        laneFilter.value = hiding(outline, track, laneFilter.value ?? "");
      },
      order: (tracks) => {
        laneOrder.value = [...tracks];
      },
      wanted: (rank) => {
        const { value: lanes } = laneRanks;
        if (ranks.value.length || !lanes.length || lanes.includes(rank)) return;
        addedRanks.value = [...(addedRanks.value ?? []), rank].sort((a, b) => a - b);
      },
      found: (found) => {
        matches.value = found?.count ?? null;
        list.value = matchList();
      },
    },
    signal,
  );
  const selected = () => ({ ranks: ranks.value, iterations: iterations.value, window: window.value });
  const pathStatus = requestPath(
    rpc,
    outline,
    onPath,
    selected,
    (path) => shown.highlight.show(path),
    signal,
  );
  const ranking = new Ranking(call, selected);
  shown.ranking = ranking;
  const step = (direction: 1 | -1) => void act(shown, { do: "match", step: direction });
  render(
    <Bar
      classes={outline.class_of}
      doubtful={outline.doubtful ?? []}
      times={choice}
      path={onPath}
      ranked={ranking.text}
      lanes={laneFilter}
      ranks={
        firstRanks.value?.length
          ? {
              outline,
              first: firstRanks.value,
              added: addedRanks,
              all: everyRank,
              shown: laneRanks,
              selected: ranks,
            }
          : null
      }
      arranging={{
        groups: laneGroups,
        order: laneOrder,
        python: frozen || !hasPython(outline) ? null : python,
      }}
      counters={
        frozen && !counted.value?.length
          ? null
          : { counters, chosen: counted, ask: () => void counters.list(ranks.value) }
      }
      goTo={frozen ? null : (what) => void act(shown, { do: "ranked", what, step: 1 })}
      {...{ matches, step, list, timesNote, pathStatus }}
    />,
    bar,
  );
  onAbort(signal, () => render(null, bar));
  render(<Splitter edge={edge} size={pixels} />, bottom);
  const side = element("div", "hta-timeline-side");
  for (const name of ["pointerdown", "pointermove", "pointerup", "keydown"])
    side.addEventListener(name, (event) => event.stopPropagation(), { signal }); // not the lanes'
  render(<Splitter edge={GUTTER_EDGE} size={gutterWidth} />, side);
  onAbort(signal, () => render(null, side));
  body.append(side);
  const effects = [
    effect(() => {
      if (height.value === asked) return; // what is remembered stays until another height is asked for
      asked = height.value;
      pixels.value = asked;
    }),
    effect(() => {
      body.style.height = `${pixels.value}px`;
      saveHeight(pixels.value);
    }),
    effect(() => shown.widenGutter(gutterWidth.value)),
    effect(() => shown.showRanks(laneRanks.value, ranks.value)),
    effect(() =>
      shown.showLanes({
        filter: laneFilter.value ?? "",
        pinned: pinned.value ?? [],
        groups: laneGroups.value ?? "rank",
        order: laneOrder.value ?? [],
      }),
    ),
    effect(() => {
      if (counted.value?.length) void counters.list(ranks.value);
    }),
    effect(() => {
      const names = counted.value ?? [];
      shown.showCounters((counters.known.value ?? []).filter(({ name }) => names.includes(name)));
    }),
    effect(() => shown.showIterations(iterations.value)),
    effect(() => shown.showFlags(flags.value ?? [])),
    effect(() => shown.showNamed(names.value, query.value)),
    effect(() => {
      const wanted = view.value;
      if (wanted && !sameView(wanted, shown)) shown.look({ t0: wanted[0], t1: wanted[1] });
    }),
    effect(() => shown.showWindow(outline.replayed ? movedWindow.value : window.value)),
    effect(() => void shown.showFocus(focusSlice.value)),
    effect(() => {
      selected();
      ranking.forget();
    }),
    effect(() => void shown.showGap(focusGap.value)),
  ];
  for (const dispose of effects) onAbort(signal, dispose);
  saveView([Math.round(shown.view.t0), Math.round(shown.view.t1)]);
  saveState(model, PICTURE, () => shown.toUrl(), signal);
  dispatch(el, BUILT, shown);
  return shown;
}

function hasPython({ class_of }: Outline): boolean {
  return class_of.some((one) => classLabel(one) === "python");
}

/** Python knows the view in whole ns: an echo of it must not move the view. */
function sameView([t0, t1]: [number, number], { view }: Timeline): boolean {
  return Math.abs(view.t0 - t0) <= 1 && Math.abs(view.t1 - t1) <= 1;
}

/** Saves the newest value once no newer one has come for a moment. */
function settled<T>(target: Signal<T>, signal: AbortSignal): (value: T) => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  onAbort(signal, () => clearTimeout(timer));
  return (value) => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (JSON.stringify(target.value) !== JSON.stringify(value)) target.value = value;
    }, SETTLE_MS);
  };
}
