import { afterEach, describe, expect, it, vi } from "vitest";
import { FlagEditor } from "../../src/timeline/flag_editor";
import { type Flag, flagAt, nextFlag, withFlag, withoutFlag } from "../../src/timeline/flags";
import { MINIMAP_HEIGHT, type Place, TOP } from "../../src/timeline/frame";
import { actionOf } from "../../src/timeline/keys";

const place: Place = { view: { t0: 0, t1: 1000 }, gutter: 100, width: 1100, height: 400, scroll: 0 };
const flags: Flag[] = [
  [100, "a"],
  [103, "b"],
  [700, ""],
];

describe("flags", () => {
  it("stand by their time, one at each", () => {
    expect(withFlag(flags, [500, "c"]).map(([time]) => time)).toEqual([100, 103, 500, 700]);
    expect(withFlag(flags, [103, "other"])).toEqual([
      [100, "a"],
      [103, "other"],
      [700, ""],
    ]);
    expect(withoutFlag(flags, 103).map(([time]) => time)).toEqual([100, 700]);
    expect(withoutFlag(flags, 104)).toEqual(flags);
  });

  it("follow one another, and after the last comes the first", () => {
    expect(nextFlag(flags, 0)?.[0]).toBe(100);
    expect(nextFlag(flags, 100)?.[0]).toBe(103);
    expect(nextFlag(flags, 700)?.[0]).toBe(100);
    expect(nextFlag([], 0)).toBeUndefined();
  });

  it("are hit on the time axis only, the one in front first", () => {
    expect(flagAt(place, flags, 800, TOP - 1)?.[0]).toBe(700);
    expect(flagAt(place, flags, 805, MINIMAP_HEIGHT)?.[0]).toBe(700);
    expect(flagAt(place, flags, 806, TOP - 1)).toBeUndefined();
    expect(flagAt(place, flags, 800, TOP)).toBeUndefined();
    expect(flagAt(place, flags, 800, MINIMAP_HEIGHT - 1)).toBeUndefined();
    expect(flagAt(place, flags, 201, TOP - 1)?.[0]).toBe(103);
    expect(flagAt({ ...place, view: { t0: 102, t1: 202 } }, flags, 99, TOP - 1)).toBeUndefined();
  });

  it("have keys", () => {
    const key = { code: "", key: "m", ctrlKey: false, metaKey: false, altKey: false, shiftKey: false };
    expect(actionOf(key)).toEqual({ do: "flag" });
    expect(actionOf({ ...key, key: "M", shiftKey: true })).toEqual({ do: "nextFlag" });
    expect(actionOf({ ...key, ctrlKey: true })).toBeNull();
  });
});

afterEach(() => document.body.replaceChildren());

describe("the note of a flag", () => {
  function editor() {
    const to = { keep: vi.fn(), remove: vi.fn(), leave: vi.fn() };
    const over = new AbortController();
    const one = new FlagEditor(to, over.signal);
    document.body.append(one.el);
    one.open([100, "before"], 900, 1000);
    const input = one.el.querySelector("input") as HTMLInputElement;
    const type = (text: string) => {
      input.value = text;
    };
    const press = (key: string) => {
      const event = new KeyboardEvent("keydown", { key, bubbles: true, cancelable: true });
      input.dispatchEvent(event);
      return event.defaultPrevented;
    };
    const submit = () => input.form?.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true }));
    return { to, one, input, type, press, submit, over };
  }

  it("is kept by Enter and by leaving it, if it has changed", () => {
    const { to, one, input, type, submit } = editor();
    expect([one.el.hidden, one.el.style.left, document.activeElement]).toEqual([false, "728px", input]);
    type(" after ");
    submit();
    expect([to.keep.mock.calls, to.leave.mock.calls.length, one.el.hidden]).toEqual([
      [[[100, "after"]]],
      1,
      true,
    ]);
    const other = editor();
    other.submit();
    expect([other.to.keep.mock.calls, other.one.el.hidden]).toEqual([[], true]);
    const left = editor();
    left.type("left");
    left.input.dispatchEvent(new FocusEvent("focusout", { bubbles: true, relatedTarget: left.input }));
    expect(left.to.keep).not.toHaveBeenCalled(); // it is still inside
    left.input.dispatchEvent(new FocusEvent("focusout", { bubbles: true, relatedTarget: null }));
    expect(left.to.keep.mock.calls).toEqual([[[100, "left"]]]);
  });

  it("is dropped by Escape, which other keys are not", () => {
    const { to, one, type, press } = editor();
    type("after");
    expect([press("m"), one.el.hidden]).toEqual([false, false]);
    expect([press("Escape"), one.el.hidden, to.keep.mock.calls]).toEqual([true, true, []]);
  });

  it("goes with its flag", () => {
    const { to, one } = editor();
    one.el.querySelector("button")?.click();
    expect([to.remove.mock.calls, to.keep.mock.calls]).toEqual([[[[100, "before"]]], []]);
  });
});
