import { expect, it } from "vitest";
import { decode } from "../src/columns";
import { wire } from "./support";

it("decodes numbers and text", () => {
  const table = decode(wire({ rank: [0, 1], idle_ns: [2 ** 53 - 1, Number.NaN], name: ["a", "b"] }));
  expect([...table.numbers("idle_ns")]).toEqual([2 ** 53 - 1, Number.NaN]);
  expect(table.numbers("name").length).toBe(0);
  expect(decode(null).rows).toBe(0);
});

it("adds whole numbers to the least of their column", () => {
  const data = new DataView(new ArrayBuffer(14));
  [0, 255].forEach((value, row) => {
    data.setUint8(row, value);
    data.setUint16(2 + 2 * row, 257 * value, true);
    data.setUint32(6 + 4 * row, 2 ** 24 * value, true);
  });
  const sized = (name: string, offset: number, bytes: number, least: number) =>
    ({ name, kind: "int", offset, bytes, least }) as const;
  const columns = [sized("a", 0, 1, -5), sized("b", 2, 2, 0), sized("c", 6, 4, 2 ** 53 - 2 ** 32)];
  const table = decode({ rows: 2, data, columns });
  expect(["a", "b", "c"].map((name) => [...table.numbers(name)])).toEqual([
    [-5, 250],
    [0, 65535],
    [2 ** 53 - 2 ** 32, 2 ** 53 - 2 ** 24],
  ]);
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

it("leaves a cell of CSV empty where there is no value", () => {
  const table = decode(wire({ rank: [0, 1], idle_ns: [2.5, Number.NaN] }));
  expect(table.toCsv()).toBe("rank,idle_ns\r\n0,2.5\r\n1,\r\n");
});
