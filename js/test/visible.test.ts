// The same table as in Python: tests/test_visible.py reads it too.

import { h, render } from "preact";
import { expect, it } from "vitest";
import cases from "../../tests/visible_cases.json";
import "../src/mount";
import { visible } from "../src/visible";

it.each(cases.cases as [string, string][])("shows %j", (text, shown) => {
  expect(visible(text)).toBe(shown);
  expect(visible(shown)).toBe(shown);
});

it("hides or isolates every letter as the table says", () => {
  const wrong: number[] = [];
  const kinds = (["hidden", "isolated"] as const).map((kind) => {
    const codes = new Uint8Array(0x110000);
    for (const [first, last] of cases[kind] as [string, string][])
      codes.fill(1, Number.parseInt(first, 16), Number.parseInt(last, 16) + 1);
    return codes;
  }) as [Uint8Array, Uint8Array];
  for (let code = 0; code < 0x110000; code++) {
    const letter = String.fromCodePoint(code);
    const shown = visible(letter);
    const hidden = shown !== letter && shown.startsWith("\\");
    const isolated = shown === `\u2068${letter}\u2069`;
    if (hidden !== Boolean(kinds[0][code]) || isolated !== Boolean(kinds[1][code])) wrong.push(code);
  }
  expect(wrong).toEqual([]);
});

it("is the last step before anything is drawn", () => {
  const el = document.createElement("div");
  render(
    h("p", { title: "\u202ea", "aria-label": "\x07" }, "x \u202eb ", h("input", { value: "\u202ec" })),
    el,
  );
  const [p, input] = [el.querySelector("p"), el.querySelector("input")];
  expect(p?.textContent).toBe("x \\u202eb ");
  expect([p?.title, p?.getAttribute("aria-label")]).toEqual(["\\u202ea", "\\x07"]);
  expect(input?.value).toBe("\u202ec"); // what is edited stays what it is
});
