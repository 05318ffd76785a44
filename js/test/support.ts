// Pages without a kernel for the tests of the views.

import type { EncodedTable } from "../src/columns";
import { views as diffViews, mount as mountDiff } from "../src/diff";
import { FrozenHost, FrozenModel } from "../src/host";
import { mount as mountPart, views as partsViews } from "../src/index";
import type { ViewProps } from "../src/model";

/** Every view that a page may show, as if one bundle held them. */
export const views = { ...partsViews, ...diffViews };
export const mount = (props: ViewProps) =>
  (props.model.get("_view") in diffViews ? mountDiff : mountPart)(props);

// jsdom knows no preferences
globalThis.matchMedia ??= () => Object.assign(new EventTarget(), { matches: false }) as MediaQueryList;

// jsdom lays nothing out
globalThis.ResizeObserver ??= class {
  observe() {}
  unobserve() {}
  disconnect() {}
};

/** What hta_widgets/widgets/table_codec.py makes of a frame. */
export function wire(columns: Record<string, number[] | string[]>): EncodedTable {
  const names = Object.keys(columns);
  const rows = columns[names[0] ?? ""]?.length ?? 0;
  const data = new DataView(new ArrayBuffer(8 * rows * names.length));
  return {
    rows,
    data,
    columns: names.map((name, i) => {
      const values = columns[name] ?? [];
      if (typeof values[0] === "string") return { name, kind: "text", values: values as string[] };
      (values as number[]).forEach((value, row) => {
        data.setFloat64(8 * (i * rows + row), value, true);
      });
      return { name, kind: "int", offset: 8 * i * rows };
    }),
  };
}

/** What every explorer has: nothing is selected, and nothing is known to be relevant or lacking. */
export const EXPLORER = {
  _view: "explorer",
  ranks: [],
  iterations: [],
  window: null,
  names: [],
  query: "",
  focus: null,
  relevant: [],
  lacking: {},
  choices: { ranks: [], iterations: [] },
  header: [],
  health: [],
  notices: [],
  available_panels: [],
  panels: [],
};

/** Mount one view on a fresh element. */
export async function show(state: Record<string, unknown>, children: Record<string, FrozenModel> = {}) {
  const model = new FrozenModel({ status: "idle", message: "", progress: null, ...state });
  const el = document.body.appendChild(document.createElement("div"));
  const controller = new AbortController();
  const host = new FrozenHost(children, views);
  await mount({ model, el, signal: controller.signal, host });
  return { model, el, close: () => controller.abort() };
}

/** jsdom knows dialogs, not the top layer. */
export function knowDialogs(): void {
  HTMLDialogElement.prototype.showModal ??= function (this: HTMLDialogElement) {
    this.open = true;
  };
  HTMLDialogElement.prototype.close ??= function (this: HTMLDialogElement) {
    this.open = false;
    this.dispatchEvent(new Event("close"));
  };
}

/** Preact draws in a microtask or a frame. */
export const drawn = async () => {
  await new Promise((resolve) => setTimeout(resolve, 30));
  // on a busy machine all timers are late together: effects run a timer after the next frame
  await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
};

/** How far an element of an svg is moved by itself and what it lies in. */
function moved(element: Element | null, svg: SVGSVGElement): [number, number] {
  if (element === null || element === svg) return [0, 0];
  const [x, y] = moved(element.parentElement, svg);
  const [, right, down] =
    /translate\(([-\d.e]+)[ ,]+([-\d.e]+)/.exec(element.getAttribute("transform") ?? "") ?? [];
  return [x + Number(right ?? 0), y + Number(down ?? 0)];
}

/** Texts of an svg that reach into the next one on their line, if a letter takes 5 px and rarely less. */
export function overlapping(svg: SVGSVGElement): string[] {
  const texts = [...svg.querySelectorAll("text")].map((element) => {
    const [dx, dy] = moved(element, svg);
    const [text, anchor] = [element.textContent ?? "", element.getAttribute("text-anchor")];
    const width = 5 * text.length;
    const x = dx + Number(element.getAttribute("x")) - width * ({ end: 1, middle: 0.5 }[anchor ?? ""] ?? 0);
    return { text, x, to: x + width, y: dy + Number(element.getAttribute("y")) };
  });
  texts.sort((one, other) => one.y - other.y || one.x - other.x);
  return texts.flatMap(({ text, x, y }, at) => {
    const before = texts[at - 1];
    return before?.y === y && before.to > x ? [`${before.text} reaches into ${text}`] : [];
  });
}

/** Marks and starts of texts that an svg draws outside of itself, a pixel left and right aside. */
export function outside(svg: SVGSVGElement): string[] {
  const [width, height] = ["width", "height"].map((name) => Number(svg.getAttribute(name))) as [
    number,
    number,
  ];
  return [...svg.querySelectorAll("rect, circle, text")].flatMap((element) => {
    const of = (name: string) => {
      const text = element.getAttribute(name) ?? "0";
      return text.endsWith("%") ? (width * Number.parseFloat(text)) / 100 : Number(text);
    };
    const [dx, dy] = moved(element, svg);
    const [x, y] = element.tagName === "circle" ? [of("cx"), of("cy")] : [of("x"), of("y")];
    const [across, down] = element.tagName === "rect" ? [of("width"), of("height")] : [0, 0];
    const fits = dx + x >= -1 && dy + y >= -1 && dx + x + across <= width + 1 && dy + y + down <= height + 1;
    return fits ? [] : [`${element.outerHTML.slice(0, 120)} of ${width} x ${height}, moved by ${dx}, ${dy}`];
  });
}

/** A key goes down there; whether it was consumed. */
export function press(target: Element | null, key: string, held: KeyboardEventInit = {}): boolean {
  const event = new KeyboardEvent("keydown", {
    key,
    bubbles: true,
    composed: true,
    cancelable: true,
    ...held,
  });
  target?.dispatchEvent(event);
  return event.defaultPrevented;
}
