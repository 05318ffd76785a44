import { afterEach, expect, it } from "vitest";
import { FrozenHost, FrozenModel } from "../src/host";
import { saveState } from "../src/saved";
import { drawn, mount, views } from "./support";

afterEach(() => document.body.replaceChildren());

/** A model as ipywidgets restores it from a notebook, or one that is joined to its kernel. */
class Restored extends FrozenModel {
  constructor(
    state: Record<string, unknown>,
    private readonly live = false,
  ) {
    super({ _view: "timeline", _runtime: "anywidget:r", status: "idle", message: "", ...state });
  }

  widget_manager = {
    get_model: async (id: string) => {
      if (id !== "r") throw new Error(`no model ${id}`);
      return { comm_live: this.live };
    },
  };
}

async function show(model: FrozenModel) {
  const el = document.body.appendChild(document.createElement("div"));
  await mount({ model, el, signal: new AbortController().signal, host: new FrozenHost({}, views) });
  await drawn();
  return el;
}

it("shows the picture that was saved, and says that nothing answers", async () => {
  const el = await show(new Restored({ _picture: { saved: "data:image/webp;base64,AAAA" } }));
  expect(el.querySelector("img")?.getAttribute("src")).toBe("data:image/webp;base64,AAAA");
  expect(el.querySelectorAll(".hta-kernel-gone")).toHaveLength(1);
  expect(el.querySelector(".hta-kernel-gone")?.textContent).toContain("No kernel answers here");
});

it("loads nothing but pictures that stand in the notebook itself", async () => {
  const el = await show(new Restored({ _picture: { saved: "https://example.org/one.png" } }));
  expect(el.querySelector("img")).toBeNull();
  expect(el.textContent).toContain("no kernel answers here");
});

it("asks the kernel where there is one", async () => {
  const model = new Restored({ _picture: { saved: "data:image/webp;base64,AAAA" } }, true);
  const el = await show(model);
  expect(model.sent[0]?.content).toMatchObject({ method: "meta" });
  expect(el.querySelector("img, .hta-kernel-gone")).toBeNull();
});

it("says once that the kernel was restarted, on the outermost part", async () => {
  const model = new Restored({}, true);
  const el = await show(model);
  const inner = el.appendChild(document.createElement("div"));
  const within = new Restored({}, true);
  const closing = new AbortController();
  await mount({ model: within, el: inner, signal: closing.signal, host: new FrozenHost({}, views) });
  for (const one of [within, model, model]) one.emit("comm_live_update");
  expect(
    [...document.querySelectorAll(".hta-kernel-gone")].map(({ parentElement }) => parentElement),
  ).toEqual([el]);
  expect(el.querySelector(".hta-kernel-gone")?.textContent).toContain("was restarted");
});

it("reads what is kept as the model is written, and not before", () => {
  const model = new FrozenModel({});
  const view = new AbortController();
  let readings = 0;
  saveState(model, "_picture", () => ++readings, view.signal);
  expect(readings).toBe(0);
  // what anywidget does, and what ipywidgets does
  expect(structuredClone(model.get("_picture"))).toEqual({ saved: 1 });
  expect(JSON.stringify(model.get("_picture"))).toBe('{"saved":2}');
  view.abort(); // the model may stay
  expect(JSON.stringify(model.get("_picture"))).toBe("{}");
  expect(readings).toBe(2);
});
