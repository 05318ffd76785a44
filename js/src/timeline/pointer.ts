// Pointer and wheel: what a gesture means depends on where it begins. The page is never trapped: a plain wheel scrolls
// the page, and the lanes only while the timeline has the focus and there is something left to scroll. One finger pans along time and leaves the
// page's own scrolling alone; on the axis it selects time; two fingers zoom and scroll the lanes. A name that is dragged
// moves its lanes.

import { timeAt } from "./frame";
import { hit } from "./hit";
import { draggedView, frameOf, minimapTime } from "./minimap";
import { type Point, pinch } from "./pinch";
import type { Timeline } from "./timeline";
import type { TrackInfo, View } from "./types";

/** Pixels that a press may wander and still be a click. */
const CLICK_SLACK = 3;
const ZOOM_PER_PIXEL = 1.0025;
/** CSS pixels of a wheel step that is counted in lines. */
const LINE = 16;

type Drag =
  | { what: "brush"; anchor: number }
  | { what: "pan" }
  | { what: "minimap"; from: View; startX: number }
  | { what: "track"; track: TrackInfo }
  | { what: "pinch" }
  | { what: "none" };

export function bindPointer(timeline: Timeline, signal: AbortSignal): void {
  const el = timeline.el;
  let drag: Drag | null = null;
  let pressed = { x: 0, y: 0 };
  let last = { x: 0, y: 0 };
  let moved = false;
  const fingers = new Map<number, Point>();

  const at = (event: MouseEvent) => {
    const box = el.getBoundingClientRect();
    return { x: event.clientX - box.left - el.clientLeft, y: event.clientY - box.top - el.clientTop };
  };

  const begin = (event: PointerEvent): Drag => {
    const place = timeline.place;
    const found = hit(place, timeline.layout, timeline.window, pressed.x, pressed.y);
    if (found.on === "minimap") {
      const [left, right] = frameOf(place, timeline.outline.extent);
      if (pressed.x < left || pressed.x > right) {
        const half = (timeline.view.t1 - timeline.view.t0) / 2;
        const centre = minimapTime(place, timeline.outline.extent, pressed.x);
        timeline.look({ t0: centre - half, t1: centre + half });
      }
      return { what: "minimap", from: timeline.view, startX: pressed.x };
    }
    if (event.shiftKey || event.button === 1) return { what: "pan" };
    if (event.button !== 0) return { what: "none" };
    if (found.on === "edge")
      return { what: "brush", anchor: (timeline.window as [number, number])[1 - found.edge] as number };
    if (found.on === "lanes" && event.pointerType === "touch") return { what: "pan" };
    if (found.on === "lanes" || found.on === "axis")
      return { what: "brush", anchor: timeAt(place, pressed.x) };
    const track = found.on === "gutter" || found.on === "fold" ? timeline.trackAt(pressed.y) : undefined;
    return track ? { what: "track", track } : { what: "none" };
  };

  el.addEventListener(
    "pointerdown",
    (event) => {
      if (event.pointerType === "touch") fingers.set(event.pointerId, at(event));
      if (fingers.size === 2) {
        drag = { what: "pinch" };
        moved = true;
        return;
      }
      pressed = last = at(event);
      moved = false;
      el.focus({ preventScroll: true });
      el.setPointerCapture(event.pointerId);
      timeline.leave();
      drag = begin(event);
      if (event.button === 1) event.preventDefault();
    },
    { signal },
  );

  el.addEventListener(
    "pointermove",
    (event) => {
      const point = at(event);
      if (drag?.what === "pinch") {
        movePinch(event.pointerId, point);
        return;
      }
      if (!drag) {
        timeline.hoverAt(point.x, point.y);
        return;
      }
      if (Math.hypot(point.x - pressed.x, point.y - pressed.y) > CLICK_SLACK) moved = true;
      if (!moved) return;
      if (drag.what === "brush") timeline.brush(drag.anchor, timeAt(timeline.place, point.x));
      else if (drag.what === "track") timeline.dragTrack(drag.track, point.y, false);
      else if (drag.what === "pan") timeline.panPixels(last.x - point.x, last.y - point.y);
      else if (drag.what === "minimap") {
        timeline.look(draggedView(timeline.place, timeline.outline.extent, drag.from, point.x - drag.startX));
      }
      last = point;
    },
    { signal },
  );

  const movePinch = (id: number, point: Point) => {
    if (!fingers.has(id)) return;
    const before = [...fingers.values()] as [Point, Point];
    fingers.set(id, point);
    const step = pinch(before, [...fingers.values()] as [Point, Point]);
    timeline.panPixels(step.from.x - step.to.x, step.from.y - step.to.y);
    timeline.zoom(step.factor, timeAt(timeline.place, Math.max(step.to.x, timeline.place.gutter)));
  };

  const finish = (event: PointerEvent) => {
    const ended = drag;
    fingers.delete(event.pointerId);
    // the finger that stays after a pinch does nothing until it is lifted too
    drag = ended?.what === "pinch" && fingers.size > 0 ? { what: "none" } : null;
    if (ended?.what === "track" && moved) timeline.dragTrack(ended.track, last.y, event.type === "pointerup");
    if (event.type !== "pointerup" || !ended || moved || event.button !== 0) return;
    if (event.shiftKey) timeline.measureTo(pressed.x, pressed.y);
    else timeline.clickAt(pressed.x, pressed.y);
  };
  el.addEventListener("pointerup", finish, { signal });
  el.addEventListener("pointercancel", finish, { signal });
  el.addEventListener("pointerleave", () => timeline.leave(), { signal });
  // the page must not scroll along with two fingers
  el.addEventListener(
    "touchmove",
    (event) => {
      if (event.touches.length > 1 && event.cancelable) event.preventDefault();
    },
    { signal, passive: false },
  );

  el.addEventListener(
    "wheel",
    (event) => {
      const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? LINE : 1;
      const dx = event.deltaX * unit;
      const dy = event.deltaY * unit;
      let used = true;
      if (event.ctrlKey || event.metaKey) {
        const factor = ZOOM_PER_PIXEL ** Math.max(-300, Math.min(300, dy));
        timeline.zoom(factor, timeAt(timeline.place, Math.max(at(event).x, timeline.place.gutter)));
      } else if (!hasFocus(el)) {
        used = false;
      } else if (event.shiftKey || Math.abs(dx) > Math.abs(dy)) {
        timeline.panPixels(event.shiftKey && dx === 0 ? dy : dx, 0);
      } else {
        used = timeline.scrollBy(dy);
      }
      if (used) event.preventDefault();
    },
    { signal, passive: false },
  );
}

function hasFocus(el: HTMLElement): boolean {
  return (el.getRootNode() as Document | ShadowRoot).activeElement === el;
}
