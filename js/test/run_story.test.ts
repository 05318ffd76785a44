// @vitest-environment jsdom

import { afterEach, expect, it } from "vitest";
import { drawn, show } from "./support";

afterEach(() => document.body.replaceChildren());

const CONTENT = {
  cause: "The steps of b take 20 ns longer.",
  other: "",
  longest_ns: 120,
  runs: [
    { name: "a", ns: 100, pieces: [{ ns: 100, lost_as: "compute", change: -1 }] },
    { name: "b", ns: 120, pieces: [{ ns: 120, lost_as: "compute", change: -1 }] },
  ],
  changes: [],
};

it("tells what is known of the runs, and only while that holds", async () => {
  const state = { _view: "run_story", content: CONTENT, shown: -1 };
  const { el, model } = await show(state);
  const told = () => el.querySelector(".hta-compared p")?.textContent?.trim();
  expect(told()).toBe(CONTENT.cause);
  for (const status of ["empty", "error"]) {
    model.set("status", status);
    await drawn();
    expect(told()).toBeUndefined();
  }
});

it("waits for the first answer", async () => {
  const { el } = await show({ _view: "run_story", content: {}, shown: -1, status: "busy" });
  expect(
    el.querySelector("section")?.ariaBusy ?? el.querySelector("section")?.getAttribute("aria-busy"),
  ).toBe("true");
  expect(el.querySelector(".hta-compared")).toBeNull();
});

it("marks the pieces of the change that is shown, and shows another one when it is clicked", async () => {
  const change = (noun: string) => ({
    part: noun,
    noun,
    lost_as: "compute",
    change_ns: 10,
    figure: "",
    label: "",
    certain: true,
    what: "",
    why: [],
    sure: "",
    kind: "",
    places: [{ run: "b", rank: 0, start_ns: 0, end_ns: 5, label: "" }],
  });
  const content = {
    ...CONTENT,
    runs: [
      { name: "a", ns: 100, pieces: [{ ns: 100, lost_as: "compute", change: -1 }] },
      {
        name: "b",
        ns: 120,
        pieces: [
          { ns: 100, lost_as: "compute", change: -1 },
          { ns: 15, lost_as: "compute", change: 0 },
          { ns: 5, lost_as: "idle", change: 1 },
        ],
      },
    ],
    changes: [change("matmul"), change("waiting")],
  };
  const { el, model } = await show({ _view: "run_story", content, shown: 0 });
  const shown = () => [...el.querySelectorAll("[data-shown]")].map((each) => each.getAttribute("title"));
  expect(shown()).toEqual(["matmul: 15 ns more here"]);
  [...el.querySelectorAll<HTMLElement>(".hta-seg")].at(-1)?.click();
  await drawn();
  expect(model.get("shown")).toBe(1);
  expect(shown()).toEqual(["waiting: 5 ns more here"]);
});
