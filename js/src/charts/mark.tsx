// A mark that selects: a group in an SVG that works as a button, by mouse and by keyboard.
//
// Tab reaches the first mark of a chart, arrows go on from there: a chart of a thousand marks is one stop.

import type { ComponentChildren } from "preact";
import { combined } from "../shared";

export interface MarkProps {
  label: string;
  /** null: the mark selects nothing and is a picture only */
  onPick: ((event: MouseEvent | KeyboardEvent) => void) | null;
  /** whether Tab stops here */
  first: boolean;
  pressed?: boolean | undefined;
  dim?: boolean | undefined;
  transform?: string;
  children: ComponentChildren;
}

const MOVES: Record<string, number> = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 };

export function Mark({ label, onPick, first, pressed, dim, transform, children }: MarkProps) {
  const look = { class: "hta-bar-row", transform, "data-dim": dim || undefined, "aria-label": label };
  const keys = (event: KeyboardEvent & { currentTarget: Element }) => {
    const move = combined(event) ? undefined : MOVES[event.key];
    if (move) neighbour(event.currentTarget, move)?.focus();
    else if (onPick && (event.key === "Enter" || event.key === " ")) onPick(event);
    else return;
    event.preventDefault();
  };
  if (!onPick)
    return (
      // biome-ignore lint/a11y/noInteractiveElementToNoninteractiveRole: its text must be reachable by keyboard
      <g {...look} role="img" data-still="" tabindex={first ? 0 : -1} onKeyDown={keys}>
        {children}
      </g>
    );
  return (
    // biome-ignore lint/a11y/useSemanticElements: an svg holds no HTML button
    <g
      {...look}
      role="button"
      tabindex={first ? 0 : -1}
      aria-pressed={pressed}
      onClick={onPick}
      onKeyDown={keys}
    >
      {children}
    </g>
  );
}

function neighbour(mark: Element, move: number): SVGElement | undefined {
  const all = [...(mark.closest("svg")?.querySelectorAll<SVGElement>(".hta-bar-row") ?? [])];
  return all[all.indexOf(mark as SVGElement) + move];
}

const LONGEST = 2000; // characters: what is longer is cut anyway
const CHARACTER = 7; // of the labels' 11 px font, on average
const CAPITAL = 1.7; // by which a capital is wider

/** A C++ kernel's name without what most of them share: its return type, namespaces and argument types. */
export function brief(name: string): string {
  if (name.length > LONGEST) return name;
  return name
    .replace(/\bvoid (?=[\w:])/, "")
    .replaceAll("(anonymous namespace)::", "")
    .replaceAll("at::native::", "")
    .replace(/(?<=[\w>])\((?:[^()]|\([^()]*\))*\)$/, "");
}

/** A text that fits into so many pixels: of a long one the middle is left out. */
export function fitted(text: string, width: number): string {
  const most = Math.max(3, Math.floor(width / CHARACTER));
  if (text.length <= most) return text;
  const end = Math.floor((most - 1) / 3);
  return `${text.slice(0, most - 1 - end)}…${text.slice(text.length - end)}`;
}

/** Kernels' names that fit into so many pixels; those that would read the same keep the part that differs. */
export function fittedNames(names: readonly string[], width: number): string[] {
  const room = Math.max(8, Math.floor(width / CHARACTER));
  const plain = (name: string) => (name.length > room ? brief(name) : name);
  const texts = new Map<string, string>();
  for (const alike of collisions(names, plain))
    for (const name of alike) texts.set(name, alike.length > 1 ? name : plain(name));
  const labels = new Map<string, string>();
  for (const alike of collisions(texts.values(), (text) => fitted(text, width)))
    if (alike.length > 1) tellApart(alike, room, labels);
  return names.map((name) => {
    const text = texts.get(name) ?? name;
    return labels.get(text) ?? fitted(text, width);
  });
}

/** A quarter of the room shows the beginning, the rest what follows the part that the texts share. */
function tellApart(texts: readonly string[], room: number, labels: Map<string, string>): void {
  let same = 0;
  const [first = ""] = texts;
  while (texts.every((text) => same < text.length && text[same] === first[same])) same++;
  const head = Math.floor(room / 4);
  const label = (text: string) => {
    const from = Math.max(head, Math.min(same - 2, text.length - (room - head - 1)));
    const rest = text.slice(from);
    const left = room - head - 1;
    return `${text.slice(0, head)}…${rest.length > left ? `${rest.slice(0, left - 1)}…` : rest}`;
  };
  for (const alike of collisions(texts, label)) {
    const [one = ""] = alike;
    if (alike.length === 1) labels.set(one, label(one));
    else tellApart(alike, room, labels);
  }
}

/** The texts in groups that get the same label. */
function collisions(texts: Iterable<string>, label: (text: string) => string): string[][] {
  const groups = new Map<string, string[]>();
  for (const text of new Set(texts)) {
    const key = label(text);
    groups.set(key, [...(groups.get(key) ?? []), text]);
  }
  return [...groups.values()];
}

/** Pixels that the longest of the labels needs, within limits. */
export function labelWidth(labels: Iterable<string>, most: number): number {
  let longest = 0;
  for (const label of labels) {
    const wide = label.length - label.replace(/[A-Z_]/g, "").length;
    longest = Math.max(longest, label.length * CHARACTER + wide * CAPITAL);
  }
  return Math.min(most, Math.ceil(longest) + 12);
}
