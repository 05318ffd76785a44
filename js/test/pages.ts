// What each test leaves on its page is kept, class by class (`npx vitest run -u` keeps new pages): what changes one is
// seen, meant or not. A line holds the class, how many elements have it, a number of all that is in them, and a text.

import { afterEach, beforeEach, expect } from "vitest";

/** Where a test has no page there are none. */
const pages = () => (typeof document === "undefined" ? [] : [...document.body.children]);
let before = new Set<Element>();

beforeEach(() => {
  before = new Set(pages());
});

afterEach(({ task }) => {
  const left = pages().filter((element) => !before.has(element));
  const lines = left.flatMap(linesOf);
  if (lines.length > 0 && task.result?.state !== "fail") expect(lines).toMatchSnapshot("page");
});

function linesOf(page: Element): string[] {
  const found = new Map<string, string[]>();
  for (const element of page.querySelectorAll("*")) {
    const name = element.getAttribute("class")?.split(" ")[0] || element.tagName.toLowerCase();
    const attributes = [...element.attributes].map(({ name: key, value }) => `${key}=${value}`).sort();
    const text = [...element.childNodes].map((node) => (node instanceof Text ? node.data : "")).join("");
    const own = [element.tagName, ...attributes, text].join("|");
    found.set(name, [...(found.get(name) ?? []), own]);
  }
  return [...found].map(([name, all]) => {
    const text = all.map((own) => own.slice(own.lastIndexOf("|") + 1).trim()).find((one) => one) ?? "";
    return `${name} ${all.length} ${sum(all.join("\n"))} ${text.slice(0, 40)}`.trimEnd();
  });
}

/** A number that changes with the text. */
function sum(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  return (hash >>> 0).toString(36);
}
