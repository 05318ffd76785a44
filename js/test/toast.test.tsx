// What an action has done is said for five seconds, unless somebody is about to answer.

import { signal } from "@preact/signals";
import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { Toast, type Told } from "../src/toast";

const SAID = { text: "Copied.", actions: [] };

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
  document.body.replaceChildren();
});

async function said(what: Told) {
  const told = signal<Told | null>(null);
  const root = document.body.appendChild(document.createElement("div"));
  render(<Toast told={told} />, root);
  told.value = what;
  await vi.advanceTimersByTimeAsync(100); // it is drawn
  const toast = root.querySelector<HTMLElement>(".hta-toast");
  if (!toast) throw new Error("there is no place for what is said");
  return toast;
}

it("is gone after five seconds", async () => {
  const toast = await said(SAID);
  await vi.advanceTimersByTimeAsync(4800);
  expect(toast.textContent).toContain("Copied.");
  await vi.advanceTimersByTimeAsync(300);
  expect(toast.textContent).toBe("");
});

it("waits for who has the focus in it", async () => {
  const toast = await said(SAID);
  toast.querySelector("button")?.focus();
  await vi.advanceTimersByTimeAsync(20_000);
  expect(toast.textContent).toContain("Copied.");
});

it("stays until it is answered where it has to", async () => {
  const toast = await said({ ...SAID, stays: true });
  await vi.advanceTimersByTimeAsync(20_000);
  expect(toast.textContent).toContain("Copied.");
  toast.querySelector("button")?.click();
  await vi.advanceTimersByTimeAsync(100);
  expect(toast.textContent).toBe("");
});
