// What keys do. Letters that zoom and pan are read by position (`code`), so that W A S D also work on AZERTY.

import { combined } from "../shared";

/** What is gone through by its length: events, or gaps of devices. */
export type Ranked = "longest" | "longest_gaps";

export type Action =
  | { do: "zoom"; factor: number }
  | { do: "pan"; screens: number }
  | { do: "scroll"; rows: number }
  | { do: "fit" }
  | { do: "all" }
  | { do: "iteration"; step: 1 | -1 }
  | { do: "neighbour"; step: 1 | -1 }
  | { do: "relative"; to: "parent" | "child"; rows: number }
  | { do: "match"; step: 1 | -1 }
  | { do: "ranked"; what: Ranked; step: 1 | -1 }
  | { do: "sameName"; step: 1 | -1 }
  | { do: "pin" }
  | { do: "hide" }
  | { do: "reorder"; step: 1 | -1 }
  | { do: "measure" }
  | { do: "flag" }
  | { do: "nextFlag" }
  | { do: "brushFocus" }
  | { do: "followFlow" }
  | { do: "clear" };

/** Zoom and pan by a tap; with Shift one goes as far as five. */
const NEAR = 0.05;
const FAR = 5 * NEAR;
/** A second of a key that is held: the logarithm of the zoom, and screens; with Shift twice that. */
const ZOOM_RATE = 3.2;
const PAN_RATE = 1.5;

const MOVES: Record<string, (by: number) => Action> = {
  KeyW: (by) => ({ do: "zoom", factor: 1 - by }),
  KeyS: (by) => ({ do: "zoom", factor: 1 / (1 - by) }),
  KeyA: (by) => ({ do: "pan", screens: -by }),
  KeyD: (by) => ({ do: "pan", screens: by }),
  ArrowLeft: (by) => ({ do: "pan", screens: -by }),
  ArrowRight: (by) => ({ do: "pan", screens: by }),
};

const BY_CODE: Record<string, Action> = {
  ArrowUp: { do: "relative", to: "parent", rows: -2 },
  ArrowDown: { do: "relative", to: "child", rows: 2 },
  PageUp: { do: "scroll", rows: -12 },
  PageDown: { do: "scroll", rows: 12 },
};

const BY_KEY: Record<string, Action> = {
  f: { do: "fit" },
  "0": { do: "all" },
  "[": { do: "iteration", step: -1 },
  "]": { do: "iteration", step: 1 },
  ",": { do: "neighbour", step: -1 },
  ".": { do: "neighbour", step: 1 },
  n: { do: "match", step: 1 },
  N: { do: "match", step: -1 },
  l: { do: "ranked", what: "longest", step: 1 },
  L: { do: "ranked", what: "longest", step: -1 },
  i: { do: "ranked", what: "longest_gaps", step: 1 },
  I: { do: "ranked", what: "longest_gaps", step: -1 },
  "<": { do: "sameName", step: -1 },
  ">": { do: "sameName", step: 1 },
  p: { do: "pin" },
  h: { do: "hide" },
  "{": { do: "reorder", step: -1 },
  "}": { do: "reorder", step: 1 },
  x: { do: "measure" },
  m: { do: "flag" },
  M: { do: "nextFlag" },
  r: { do: "brushFocus" },
  g: { do: "followFlow" },
  Escape: { do: "clear" },
};

export const HELP =
  "W S zoom, A D or arrows pan, with Shift by more, page up and down scroll, period and comma step through slices, up and down go to the " +
  "caller and the first call, less-than and greater-than to the previous and next slice of the same name, L goes to " +
  "the longest event of the selection and then to the next longest, I to the longest gap, with Shift back, " +
  "N and Shift N go through matches, F fits the focused slice, R brushes it, P pins its lanes to the top, H hides them, braces move them up and down, " +
  "G follows its launch, X measures from the focused slice to the one that is focused next, M flags the moment under the pointer and asks for a note, Shift M goes to the next flag, brackets step through iterations, 0 shows all, Escape clears";

/** The action of a key, or null if the key is none of the timeline's. Combinations with Ctrl, Cmd or Alt never are. */
export function actionOf(
  event: Pick<KeyboardEvent, "code" | "key" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">,
): Action | null {
  if (combined(event)) return null;
  if (event.key === "Enter") return { do: "match", step: event.shiftKey ? -1 : 1 };
  const move = MOVES[event.code];
  if (move) return move(event.shiftKey ? FAR : NEAR);
  return BY_CODE[event.code] ?? BY_KEY[event.key] ?? null;
}

/** What so many seconds of a held key do; null for keys that only act once. */
export function heldActionOf(
  event: Pick<KeyboardEvent, "code" | "ctrlKey" | "metaKey" | "altKey" | "shiftKey">,
): ((seconds: number) => Action) | null {
  const move = combined(event) ? undefined : MOVES[event.code];
  if (!move) return null;
  const times = event.shiftKey ? 2 : 1;
  const zooms = move(NEAR).do === "zoom";
  return (seconds) => move(zooms ? 1 - Math.exp(-ZOOM_RATE * times * seconds) : PAN_RATE * times * seconds);
}
