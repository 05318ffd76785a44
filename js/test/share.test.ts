// @vitest-environment jsdom

import { afterEach, expect, it, vi } from "vitest";
import type { Rpc } from "../src/rpc";
import { shareItems } from "../src/share";

vi.mock("../src/charts/image", () => ({ rasterized: async (svg: string) => new Blob([`png of ${svg}`]) }));
afterEach(() => vi.unstubAllGlobals());

class Picture {
  constructor(readonly parts: Record<string, Promise<Blob>>) {}
}

/** What becomes of "Copy image": the texts that the clipboard got, and the names of files that were saved. */
async function copied(clipboard?: { write(items: Picture[]): Promise<void> }) {
  const svg = new TextEncoder().encode("svg");
  const rpc = { call: async () => ({ result: { chunks: 1 }, buffers: [new DataView(svg.buffer)] }) };
  const saved: string[] = [];
  vi.stubGlobal("navigator", { clipboard });
  vi.stubGlobal("URL", { createObjectURL: () => "blob:", revokeObjectURL: () => {} });
  vi.spyOn(HTMLAnchorElement.prototype, "click").mockImplementation(function (this: HTMLAnchorElement) {
    saved.push(this.download);
  });
  const item = shareItems(rpc as unknown as Rpc, () => "run 3/a").find(({ label }) => label === "Copy image");
  await item?.run({ progress: () => {}, signal: new AbortController().signal });
  return saved;
}

it("puts a picture on the clipboard, and saves none", async () => {
  const got: Promise<Blob>[] = [];
  const write = async (items: Picture[]) => {
    got.push(...items.map(({ parts }) => parts["image/png"] as Promise<Blob>));
  };
  vi.stubGlobal("ClipboardItem", Picture);
  expect(await copied({ write })).toEqual([]);
  expect(got).toHaveLength(1);
  expect((await got[0])?.size).toBe("png of svg".length);
});

it("saves the picture where the page has no clipboard, or one without pictures, or may not use it", async () => {
  const write = () => Promise.reject(new DOMException("not allowed"));
  expect(await copied({ write: () => expect.unreachable() })).toEqual(["run_3_a.png"]);
  vi.stubGlobal("ClipboardItem", Picture);
  expect(await copied()).toEqual(["run_3_a.png"]);
  expect(await copied({ write })).toEqual(["run_3_a.png"]);
});

it("tells what fails otherwise", async () => {
  vi.stubGlobal("ClipboardItem", Picture);
  await expect(copied({ write: () => Promise.reject(new Error("no picture")) })).rejects.toThrow(
    "no picture",
  );
});
