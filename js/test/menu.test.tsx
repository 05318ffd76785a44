// A button that opens a list of actions, by keys and by mouse; what an action does meanwhile is told.

import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { type Item, Menu, type Task } from "../src/menu";
import { press } from "./support";

const nothing = () => undefined;
let root: HTMLElement;

beforeEach(() => {
  vi.useFakeTimers();
  root = document.body.appendChild(document.createElement("div"));
});

afterEach(() => {
  render(null, root);
  vi.useRealTimers();
  document.body.replaceChildren();
});

const rest = () => vi.advanceTimersByTimeAsync(100); // it is drawn
const opener = () => root.querySelector<HTMLElement>("button") as HTMLElement;
const items = () => [...root.querySelectorAll<HTMLElement>('[role="menuitem"]')];
const focused = () => document.activeElement?.textContent;

/** A menu of these actions, opened. */
async function opened(...actions: Partial<Item>[]): Promise<void> {
  const all = actions.map((each, at) => ({ label: `Action ${at}`, hint: "", run: nothing, ...each }));
  render(<Menu label="Share" items={all} />, root);
  opener().click();
  await rest();
}

async function pressed(key: string, held: KeyboardEventInit = {}): Promise<boolean> {
  const consumed = press(document.activeElement, key, held);
  await rest();
  return consumed;
}

it("opens with the focus on the first action, and closes by the same button", async () => {
  await opened({}, {});
  expect(focused()).toBe("Action 0");
  expect(opener().getAttribute("aria-expanded")).toBe("true");
  opener().click();
  await rest();
  expect(items()).toEqual([]);
});

it("goes round by the arrows", async () => {
  await opened({}, {}, {});
  const seen: unknown[] = [];
  for (const key of ["ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp", "ArrowUp"]) {
    expect(await pressed(key)).toBe(true);
    seen.push(focused());
  }
  expect(seen).toEqual(["Action 1", "Action 2", "Action 0", "Action 2", "Action 1"]);
});

it("closes by Escape, and gives the focus back", async () => {
  await opened({});
  expect(await pressed("Escape")).toBe(true);
  expect(items()).toEqual([]);
  expect(document.activeElement).toBe(opener());
});

it("leaves other keys, and those with a modifier, to the page", async () => {
  await opened({}, {});
  expect(await pressed("x")).toBe(false);
  for (const held of [{ ctrlKey: true }, { metaKey: true }, { altKey: true }]) {
    expect(await pressed("ArrowDown", held)).toBe(false);
  }
  expect(focused()).toBe("Action 0");
  await pressed("Escape");
  expect(await pressed("Escape")).toBe(false); // a closed menu has no keys
});

it("closes when the focus leaves it, not when it moves inside", async () => {
  await opened({}, {});
  items()[1]?.focus();
  await rest();
  expect(items()).toHaveLength(2);
  const outside = document.body.appendChild(document.createElement("button"));
  outside.focus();
  await rest();
  expect(items()).toEqual([]);
});

/** An action that ends when it is told to. */
function slow() {
  let task: Task | undefined;
  let end: { resolve(): void; reject(error: Error): void } | undefined;
  const run = (given: Task) =>
    new Promise<void>((resolve, reject) => {
      task = given;
      end = { resolve, reject };
    });
  return { run, task: () => task as Task, end: () => end as NonNullable<typeof end> };
}

it("tells how far an action is, and for a moment that it is done", async () => {
  const action = slow();
  await opened({ run: action.run, done: "Saved" });
  items()[0]?.click();
  await rest();
  expect(root.textContent).toContain("Action 0…");
  action.task().progress(0.424);
  await rest();
  expect(root.textContent).toContain("Action 0 42 %");
  action.end().resolve();
  await rest();
  expect(opener().textContent).toBe("Saved");
  await vi.advanceTimersByTimeAsync(1400);
  expect(opener().textContent).toBe("Share");
});

it("says why an action failed, long enough to read it", async () => {
  const action = slow();
  await opened({ run: action.run });
  items()[0]?.click();
  await rest();
  action.end().reject(new Error("no room"));
  await rest();
  expect(root.querySelector("[role=alert]")?.textContent).toBe("Action 0 failed: no room");
  expect(opener().textContent).toBe("Share");
  await vi.advanceTimersByTimeAsync(7000);
  expect(root.querySelector("[role=alert]")).not.toBeNull();
  await vi.advanceTimersByTimeAsync(1000);
  expect(root.querySelector("[role=alert]")).toBeNull();
});

it("cancels a running action, and calls that no failure", async () => {
  const action = slow();
  await opened({ run: action.run });
  items()[0]?.click();
  await rest();
  opener().click();
  expect(action.task().signal.aborted).toBe(true);
  action.end().reject(new Error("aborted"));
  await rest();
  expect(root.textContent).toBe("Share");
});

it("cancels what runs when its view is gone", async () => {
  const action = slow();
  await opened({ run: action.run });
  items()[0]?.click();
  await rest();
  render(null, root);
  expect(action.task().signal.aborted).toBe(true);
});

it("does not take back what a later action says", async () => {
  await opened({ done: "One" }, { done: "Two" });
  items()[0]?.click();
  await rest();
  expect(opener().textContent).toBe("One");
  await vi.advanceTimersByTimeAsync(800);
  opener().click();
  await rest();
  items()[1]?.click();
  await vi.advanceTimersByTimeAsync(1000);
  expect(opener().textContent).toBe("Two");
});

it("tells several menus apart by what they are of", async () => {
  render(<Menu label="Share" of="Kernels" items={[{ label: "Copy", hint: "", run: nothing }]} />, root);
  expect(opener().getAttribute("aria-label")).toBe("Kernels: Share");
  opener().click();
  await rest();
  expect(root.querySelector("[role=menu]")?.getAttribute("aria-label")).toBe("Kernels: Share");
});
