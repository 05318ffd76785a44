// What the actions of the keys do to the timeline.

import { frameAround, panBy } from "./camera";
import type { Action } from "./keys";
import { ROW_HEIGHT } from "./layout";
import type { Timeline } from "./timeline";
import type { Slice } from "./types";

export async function act(timeline: Timeline, action: Action): Promise<void> {
  const { bounds } = timeline;
  const { t0, t1 } = timeline.view;
  const focused = timeline.focus.slice;
  if (action.do === "zoom") timeline.zoom(action.factor, zoomCentre(timeline));
  else if (action.do === "pan") timeline.look(panBy(timeline.view, action.screens * (t1 - t0), bounds));
  else if (action.do === "scroll") timeline.scrollBy(action.rows * ROW_HEIGHT);
  else if (action.do === "all") timeline.look({ t0: bounds[0], t1: bounds[1] });
  else if (action.do === "pin") timeline.pin();
  else if (action.do === "hide") timeline.hide();
  else if (action.do === "reorder") timeline.reorder(action.step);
  else if (action.do === "measure") timeline.hold();
  else if (action.do === "flag") timeline.flagging.place();
  else if (action.do === "nextFlag") timeline.flagging.goToNext();
  else if (action.do === "iteration") stepIteration(timeline, action.step);
  else if (action.do === "match")
    await goTo(timeline, timeline.source.nextMatch(place(timeline), action.step));
  else if (action.do === "ranked") {
    const place = await timeline.ranking?.step(action.what, action.step);
    if (place && "slice" in place) {
      timeline.approach(place.slice.start, place.slice.start + place.slice.dur);
      await timeline.choose(place.slice, true);
    } else if (place) {
      const [lane, start, end] = place.gap;
      timeline.look(frameAround(start, end, 0.5, timeline.bounds)); // half of the view, as evidence
      await timeline.choose(null, false);
      timeline.chooseGap(lane, [start, end]);
    }
  } else if (action.do === "clear") {
    timeline.leave();
    timeline.held = null;
    timeline.brush(0, 0);
    await timeline.choose(null, false);
  } else if (action.do === "brushFocus" && timeline.gap)
    timeline.brush(timeline.gap.start, timeline.gap.start + timeline.gap.dur);
  else if (action.do === "relative" && !focused) timeline.scrollBy(action.rows * ROW_HEIGHT);
  else if (focused) await actOn(timeline, focused, action);
}

async function actOn(timeline: Timeline, focused: Slice, action: Action): Promise<void> {
  const end = focused.start + focused.dur;
  const { source } = timeline;
  if (action.do === "fit") timeline.look(frameAround(focused.start, end, 0.6, timeline.bounds));
  else if (action.do === "brushFocus") timeline.brush(focused.start, end);
  else if (action.do === "followFlow") await goTo(timeline, timeline.focus.otherEnd);
  else if (action.do === "relative") await goTo(timeline, source.relative(focused, action.to));
  else if (action.do === "sameName")
    await goTo(timeline, timeline.ranking?.sameName(focused, action.step) ?? null);
  else if (action.do === "neighbour") await goTo(timeline, source.neighbour(focused, action.step));
}

async function goTo(timeline: Timeline, slice: Slice | null | Promise<Slice | null>): Promise<void> {
  const found = await slice;
  if (found) await timeline.choose(found, true);
}

/** Where the search for the next match begins: at the focused slice, else where the view does. */
function place(timeline: Timeline): { start: number; id: number } {
  const { slice } = timeline.focus;
  return slice ? { start: slice.start, id: slice.id } : { start: timeline.view.t0, id: -1 };
}

function zoomCentre(timeline: Timeline): number {
  const { hover, view } = timeline;
  return hover.time ?? (view.t0 + view.t1) / 2;
}

function stepIteration(timeline: Timeline, step: 1 | -1): void {
  const bands = timeline.bands();
  const centre = (timeline.view.t0 + timeline.view.t1) / 2;
  const current = bands.findIndex((band) => band.end > centre);
  const from = current < 0 ? bands.length : current;
  const target = bands[Math.min(Math.max(from + step, 0), bands.length - 1)];
  if (target) timeline.look(frameAround(target.start, target.end, 0.02, timeline.bounds));
}
