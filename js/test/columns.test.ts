import { expect, it } from "vitest";
import { decode } from "../src/columns";
import { wire } from "./support";

it("decodes numbers and text", () => {
  const table = decode(wire({ rank: [0, 1], idle_ns: [2 ** 53 - 1, Number.NaN], name: ["a", "b"] }));
  expect([...table.numbers("idle_ns")]).toEqual([2 ** 53 - 1, Number.NaN]);
  expect(table.numbers("name").length).toBe(0);
  expect(decode(null).rows).toBe(0);
});

it("has a short text for the names that are too long for a cell, and for those alone", () => {
  const encoded = wire({ name: ["void long()", "constructor"] });
  for (const column of encoded.columns) column.short = { "void long()": "long" };
  const table = decode(encoded);
  expect(["void long()", "constructor"].map((text) => table.cell("name", text))).toEqual([
    "long",
    "constructor",
  ]);
  expect(table.cell("absent", "text")).toBe("text");
  expect(table.toCsv()).toContain("void long()");
});

it("writes CSV that a spreadsheet neither runs nor rounds", () => {
  const table = decode(wire({ dur_ns: [9007199254740991, -1], name: ['say "hi", you', "=HYPERLINK(1)"] }));
  expect(table.toCsv()).toBe('dur_ns,name\r\n9007199254740991,"say ""hi"", you"\r\n-1,\'=HYPERLINK(1)\r\n');
});
