// Text from traces as a reader may see it: what is hidden in it is shown, and no letter moves its neighbours.
// hta_widgets/visible.py does the same and says why; tests/visible_cases.json holds both to one table.

import { options, type VNode } from "preact";

const RIGHT_TO_LEFT =
  "[\\u0590-\\u061b\\u061d-\\u08ff\\ufb1d-\\ufdff\\ufe70-\\ufefe\\u{10800}-\\u{10fff}\\u{1e800}-\\u{1efff}]+";
const WORDS = `${RIGHT_TO_LEFT}(?: +${RIGHT_TO_LEFT})*`;
const HIDDEN =
  "[\\0-\\x08\\x0b-\\x1f\\x7f-\\x9f\\xad\\u061c\\u180e\\u200b\\u200e\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff" +
  "\\ufff9-\\ufffb\\u{e0000}-\\u{e007f}\\ud800-\\udfff]";
const UNSAFE = new RegExp(`(\\u2068${WORDS}\\u2069)|(${HIDDEN})|${WORDS}`, "gu");
const PLAIN = /^[\n\t\x20-\x7e]*$/;

/** The text with what is hidden in it shown as an escape, and words from right to left isolated. */
export function visible(text: string): string {
  if (PLAIN.test(text)) return text;
  return text.replace(UNSAFE, (found, isolated, hidden) =>
    hidden ? escaped(hidden) : isolated || `\u2068${found}\u2069`,
  );
}

function escaped(letter: string): string {
  if (letter === "\r") return "\\r";
  const code = letter.codePointAt(0) as number;
  const [sign, digits] = code < 0x100 ? ["x", 2] : code < 0x10000 ? ["u", 4] : ["U", 8];
  return `\\${sign}${code.toString(16).padStart(digits as number, "0")}`;
}

const READ = ["title", "aria-label", "aria-valuetext", "aria-description", "alt", "placeholder"];

/** Make visible whatever Preact draws from now on: texts, and attributes that are read as texts. */
export function drawVisibly(): void {
  const before = options.vnode;
  options.vnode = (node: VNode) => {
    before?.(node);
    const drawn = node as { type: unknown; props: unknown };
    if (drawn.type === null && typeof drawn.props === "string") drawn.props = visible(drawn.props);
    if (typeof drawn.type !== "string") return;
    const props = drawn.props as Record<string, unknown>;
    for (const name of READ) {
      const text = props[name];
      if (typeof text === "string") props[name] = visible(text);
    }
  };
}
