import { describe, expect, test, vi } from "vitest";
import { decode } from "../src/columns";
import { answerEvents } from "../src/report/events";
import { openReport } from "../src/report/open";
import { FrozenPart } from "../src/report/part";
import { type Content, unpack } from "../src/report/payload";
import { FrozenSelection } from "../src/report/selection";
import { drawn, EXPLORER, mount, views, wire } from "./support";

// jsdom has no layout to scroll
Element.prototype.scrollIntoView ??= () => {};

/** What hta_widgets/report/payload.py makes of a value that has buffers in it. */
async function pack(
  value: unknown,
  paths: (string | number)[][] = [],
  buffers: Uint8Array[] = [],
): Promise<string> {
  const sizes = buffers.map((one) => one.length);
  const text = new TextEncoder().encode(JSON.stringify({ value, paths, sizes }));
  const length = new Uint8Array(new Uint32Array([text.length]).buffer);
  const plain = new Uint8Array([length, text, ...buffers].flatMap((one) => [...one]));
  const stream = (new Response(plain).body as ReadableStream).pipeThrough(new CompressionStream("gzip"));
  const packed = new Uint8Array(await new Response(stream).arrayBuffer());
  return btoa(String.fromCharCode(...packed));
}

const ask = (model: FrozenPart, method: string, params: object = {}) =>
  new Promise<{ content: { result?: unknown; error?: { message: string } }; buffers: DataView[] }>(
    (resolve) => {
      model.on("msg:custom", (content, buffers) => resolve({ content, buffers }));
      model.send({ rpc: 1, call: "1", method, params });
    },
  );

test("buffers come back where they were", async () => {
  const packed = await pack(
    { parts: { a: { data: null }, b: { tables: [null, null] } } },
    [
      ["parts", "a", "data"],
      ["parts", "b", "tables", 0],
      ["parts", "b", "tables", 1],
    ],
    [new Uint8Array([7, 8]), new Uint8Array([1, 2, 3, 4, 5, 6, 7, 8, 9]), new Uint8Array([0])],
  );
  const { parts } = (await unpack(packed)) as unknown as {
    parts: { a: { data: DataView }; b: { tables: DataView[] } };
  };
  const found = [parts.a.data, ...parts.b.tables].map((view) =>
    Array.from({ length: view.byteLength }, (_, at) => view.getUint8(at)),
  );
  expect(found).toEqual([[7, 8], [1, 2, 3, 4, 5, 6, 7, 8, 9], [0]]);
});

describe("a frozen part", () => {
  const once = { method: "window", result: 1, buffers: [], once: true };

  test("answers what was saved, and says why it cannot answer the rest", async () => {
    const model = new FrozenPart({}, [{ method: "meta", result: { chunks: 1 }, buffers: [], once: false }]);
    expect((await ask(model, "meta")).content.result).toEqual({ chunks: 1 });
    expect((await ask(model, "sharper")).content.error?.message).toContain("notebook");
  });

  test("leaves a second question after something sharper unanswered", async () => {
    const model = new FrozenPart({}, [once]);
    await ask(model, "window");
    let answers = 0;
    model.on("msg:custom", () => {
      answers += 1;
    });
    model.send({ rpc: 1, call: "2", method: "window" });
    await drawn();
    expect(answers).toBe(0);
  });
});

test("traits of one name move together, and it is known when figures no longer fit", () => {
  const [ranks, timeline] = [new FrozenPart({ ranks: [] }, []), new FrozenPart({ ranks: [], query: "" }, [])];
  const selection = new FrozenSelection([ranks, timeline]);
  timeline.set("query", "nccl");
  expect(selection.moved.value).toBe(false);
  ranks.set("ranks", [1]);
  expect([timeline.get("ranks"), selection.moved.value]).toEqual([[1], true]);
  selection.restore();
  expect([ranks.get("ranks"), selection.moved.value]).toEqual([[], false]);
});

test("what is selected in one run is none of another's business", () => {
  const [one, two] = ["one", "two"].map((run) => new FrozenPart({ run, window: null, names: [] }, []));
  const selection = new FrozenSelection([one as FrozenPart, two as FrozenPart]);
  one?.set("window", [1, 2]);
  expect([two?.get("window"), selection.moved.value]).toEqual([null, true]);
  selection.restore();
  expect([one?.get("window"), selection.moved.value]).toEqual([null, false]);
});

describe("saved events", () => {
  const tables = [
    wire({ rank: [0, 0], event_id: [5, 6], name: ["b", "a"], event_class: ["x", "x"], dur_ns: [2, 9] }),
    wire({ rank: [1], event_id: [5], name: ["Bee"], event_class: ["x"], dur_ns: [Number.NaN] }),
  ];
  const table = (saved: object) => {
    const state = { names: [], query: "", sort: "", rows: 3, version: 1, status: "idle", message: "" };
    const result = { tables, sortable: true, searchable: true, ...saved };
    const model = new FrozenPart(state, [{ method: "saved", result, buffers: [], once: false }]);
    answerEvents(model);
    return model;
  };
  const names = async (model: FrozenPart) => {
    const { content, buffers } = await ask(model, "page", { first: 0, count: 10, columns: ["dur_ns"] });
    // biome-ignore lint/suspicious/noExplicitAny: the wire's table
    return decode({ ...(content.result as any), data: buffers[0] }).column("name")?.values;
  };

  test("are sorted, missing values last, and searched whatever the case", async () => {
    const model = table({});
    model.set("sort", "-dur_ns");
    expect(await names(model)).toEqual(["a", "b", "Bee"]);
    model.set("query", "B");
    expect(await names(model)).toEqual(["b", "Bee"]);
    expect([model.get("rows"), model.get("version")]).toEqual([2, 3]);
    model.set("query", "none");
    expect([model.get("status"), model.get("rows")]).toEqual(["empty", 0]);
  });

  test("are found by rank and id", async () => {
    expect((await ask(table({}), "find", { rank: 1, event_id: 5 })).content.result).toEqual({
      row: 2,
      version: 1,
    });
  });

  test("of a longer list stay as they are", async () => {
    const model = table({ sortable: false, searchable: false });
    model.set("sort", "-dur_ns");
    model.set("query", "a");
    expect(model.get("sort")).toBe("");
    expect(await names(model)).toEqual(["b", "a", "Bee"]);
  });
});

test("a page that cannot be read says so", async () => {
  document.body.innerHTML = '<main></main><script type="text/plain" id="hta-payload">nothing</script>';
  await openReport(document, { mount, views });
  expect(document.querySelector("main")?.textContent).toContain("cannot be opened");
});

test("a report begins with the story", async () => {
  const part = (state: object) => ({
    state: { status: "idle", message: "", progress: null, ...state },
    questions: [],
  });
  const kinds = ["steps", "overview"];
  const content: Content = {
    root: "explorer",
    about: { made: "today", version: "hta_widgets 1", notes: [] },
    parts: {
      explorer: part({
        ...EXPLORER,
        header: [],
        health: [],
        notices: [],
        available_panels: kinds.map((kind) => ({ kind, label: kind, title: kind, group: "Time" })),
        panels: kinds,
        parts: [
          ["iterations", "part:0"],
          ...kinds.map((kind, n) => ["panel", `part:${n + 1}`, kind]),
          ["story", "part:3"],
        ],
      }),
      ...Object.fromEntries(
        [0, 1, 2].map((n) => [
          `part:${n}`,
          part({ _view: "iterations", iterations: [], source: "", table: null }),
        ]),
      ),
      "part:3": part({
        _view: "story",
        content: {
          ...{ scope: "1 rank", narrowed: false, headline: "Nothing <b>stands</b> out", limits: "" },
          ...{ whole_ns: 0, per_step: false, parts: [], saved: "", remains: "", advice: [] },
          ...{
            trust: "",
            clean: [],
            unknown: [],
            asides: [],
            kinds: [],
            nothing: "",
            hint: "",
            look_at: "operators",
          },
        },
        shown: -1,
      }),
    },
  };
  const order = (el: Element) =>
    [...el.querySelectorAll<HTMLElement>(".hta-slot")].map(
      (slot) => slot.parentElement?.dataset.kind ?? slot.dataset.area,
    );
  document.body.innerHTML = `<main></main><script type="text/plain" id="hta-payload">${await pack(content)}</script>`;
  await openReport(document, { mount, views });
  await drawn();
  const saved = order(document.querySelector("main") as HTMLElement);
  expect(saved).toEqual(["story", "iterations", "steps", "overview"]);
  expect(document.querySelector("main .hta-story")?.textContent).toContain("Nothing <b>stands</b> out");
});

test("a report draws its explorer, and panels hide and come back", async () => {
  const part = (state: object) => ({
    state: { status: "idle", message: "", progress: null, ...state },
    questions: [],
  });
  const content: Content = {
    root: "explorer",
    about: { made: "today", version: "hta_widgets 1", notes: ["<b>note</b>"] },
    parts: {
      explorer: part({
        ...EXPLORER,
        header: [],
        health: [],
        notices: [],
        available_panels: [{ kind: "steps", label: "Steps", title: "Steps", group: "Time" }],
        panels: ["steps"],
        parts: [["panel", "part:0", "steps"]],
      }),
      "part:0": part({ _view: "iterations", iterations: [], source: "", table: null }),
    },
  };
  document.body.innerHTML = `<main></main><script type="text/plain" id="hta-payload">${await pack(content)}</script>`;
  await openReport(document, { mount, views });
  await drawn();
  const main = document.querySelector("main") as HTMLElement;
  expect(main.textContent).toContain("<b>note</b>");
  expect(main.textContent, "nothing else is selected than was saved").not.toContain("saved selection");
  const toggle = main.querySelector<HTMLElement>(".hta-panel-bar [data-kind=steps]");
  toggle?.click();
  await drawn();
  expect(main.querySelector(".hta-panel")).toBeNull();
  toggle?.click();
  await vi.waitFor(() => expect(main.querySelector(".hta-panel h3")?.textContent).toBe("Iterations"));
});
