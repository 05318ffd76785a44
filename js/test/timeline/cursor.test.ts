import { expect, it } from "vitest";
import { Cursor } from "../../src/timeline/cursor";

it("stands at whole pixels, and nowhere", () => {
  const cursor = new Cursor();
  expect(cursor.el.hidden).toBe(true);
  cursor.move(40.4);
  expect([cursor.el.hidden, cursor.el.style.transform]).toEqual([false, "translateX(40px)"]);
  cursor.move(0);
  expect([cursor.el.hidden, cursor.el.style.transform]).toEqual([false, "translateX(0px)"]);
  cursor.move(null);
  expect(cursor.el.hidden).toBe(true);
  cursor.move(0);
  expect(cursor.el.hidden).toBe(false);
});
