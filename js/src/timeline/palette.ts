// Colours by event class, with a fixed meaning, read from the theme. Among host work, lightness distinguishes names.

import { element } from "../page";
import type { Outline } from "./types";

export type Rgb = readonly [number, number, number];

/** By event class (hta_widgets/trace/classify.py): name and shared colour, as set in theme.css and timeline.css. */
const CLASSES: readonly { label: string; colour: string }[] = [
  { label: "compute", colour: "compute" },
  { label: "communication", colour: "communication" },
  { label: "memory copy", colour: "memory" },
  { label: "memory set", colour: "memory" },
  { label: "sync", colour: "sync" },
  { label: "host op", colour: "host" },
  { label: "runtime", colour: "runtime" },
  { label: "annotation", colour: "annotation" },
  { label: "python", colour: "python" },
  { label: "overhead", colour: "overhead" },
  { label: "other", colour: "other" },
];
const FIRST_HOST_CLASS = 5;
/** How much of its colour a faded slice keeps. */
const FADED = 0.2;
/** Least contrast of text (WCAG 2, AA). */
const READABLE = 4.5;
const BLACK: Rgb = [0, 0, 0];
const WHITE: Rgb = [255, 255, 255];

const SHADES = 7;

/** How the slices of a kind are drawn. */
interface Look {
  ink: number;
  faded: number;
  text: string;
  textFaded: string;
}

/** The colours of slices. */
export interface Inks {
  classes: Rgb[];
  /** per kind, packed for a canvas' pixels */
  kinds: Uint32Array;
}

export interface Palette extends Inks {
  /** per kind: black or white, whichever reads better on it */
  textOnKind: string[];
  /** per kind: a quiet colour that still reads on it while it is faded */
  textOnFaded: string[];
  /** what lies behind lanes, packed: plain, every other iteration, a chosen one */
  grounds: { plain: number; odd: number; chosen: number };
  /** the colours of slices while others are to be seen */
  faded: Inks;
  idle: string;
  background: string;
  raised: string;
  text: string;
  muted: string;
  line: string;
  accent: string;
  accentSoft: string;
}

export function classLabel(eventClass: number): string {
  return CLASSES[eventClass]?.label ?? "other";
}

/** Names of the colours that these classes have, in order and each once: what a legend lists. */
export function colourNames(eventClasses: readonly number[]): string[] {
  const used = new Set(eventClasses);
  return [...new Set(CLASSES.filter((_, i) => used.has(i)).map((entry) => entry.colour))];
}

export function readPalette(el: HTMLElement, outline: Outline): Palette {
  // The browser resolves whatever a variable holds (names, light-dark(), another variable) to rgb().
  const probe = el.appendChild(element("span"));
  probe.style.setProperty("forced-color-adjust", "none"); // else all colours are one
  const read = (name: string) => {
    probe.style.color = `var(--hta-${name})`;
    return getComputedStyle(probe).color;
  };
  const classes = CLASSES.map((entry) => parseColour(read(entry.colour)));
  const [background, raised, accentSoft] = [read("background"), read("raised"), read("accent-soft")];
  const [text, muted] = [read("text"), read("muted")];
  const ground = parseColour(background);
  const fade = (colour: Rgb) => mixed(ground, colour, FADED);
  const quiet = parseColour(muted);
  // Kinds may be tens of thousands, their colours are few.
  const looks = new Map<number, Look>();
  const look = (name: string, kind: number): Look => {
    const eventClass = outline.class_of[kind] as number;
    const shade = eventClass < FIRST_HOST_CLASS ? 0 : shadeOf(name);
    const key = eventClass * SHADES + shade;
    const known = looks.get(key);
    if (known) return known;
    const colour = shaded(classes[eventClass] ?? (classes[10] as Rgb), shade);
    const faded = fade(colour);
    const made = {
      ink: pack(colour, 255),
      faded: pack(faded, 255),
      text: textOn(colour),
      textFaded: contrast(quiet, faded) >= READABLE ? muted : text,
    };
    looks.set(key, made);
    return made;
  };
  const kinds = outline.names.map(look);
  const palette = {
    classes,
    kinds: Uint32Array.from(kinds, ({ ink }) => ink),
    faded: {
      classes: classes.map(fade),
      kinds: Uint32Array.from(kinds, ({ faded }) => faded),
    },
    idle: read("idle"),
    textOnKind: kinds.map((kind) => kind.text),
    textOnFaded: kinds.map((kind) => kind.textFaded),
    grounds: {
      plain: pack(ground, 255),
      odd: pack(laidOn(ground, raised), 255),
      chosen: pack(laidOn(ground, accentSoft), 255),
    },
    background,
    raised,
    text,
    muted,
    line: read("line"),
    accent: read("accent"),
    accentSoft,
  };
  probe.remove();
  return palette;
}

/** A computed colour to numbers; grey for what is not rgb(). */
export function parseColour(text: string): Rgb {
  const numbers = /^rgba?\(([^)]*)\)/
    .exec(text)?.[1]
    ?.split(/[\s,/]+/)
    .map(Number);
  return numbers && numbers.length >= 3
    ? [numbers[0] ?? 0, numbers[1] ?? 0, numbers[2] ?? 0]
    : [136, 136, 136];
}

/** A canvas pixel as one little-endian number. */
export function pack([r, g, b]: Rgb, alpha: number): number {
  return ((alpha << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

/** What a colour that may be translucent looks like on a ground. */
function laidOn(ground: Rgb, text: string): Rgb {
  const alpha = /^rgba\(([^)]*)\)/.exec(text)?.[1]?.split(/[\s,/]+/)[3];
  return mixed(ground, parseColour(text), alpha === undefined ? 1 : Number(alpha));
}

/** `share` of `colour`, the rest of `ground`. */
function mixed(ground: Rgb, colour: Rgb, share: number): Rgb {
  return colour.map((part, i) =>
    Math.round(share * part + (1 - share) * (ground[i] as number)),
  ) as unknown as Rgb;
}

/** Which shade of its class a name has: from -3 to 3, lighter or darker. */
function shadeOf(name: string): number {
  let hash = 0;
  for (let i = 0; i < name.length; i++) hash = (hash * 31 + name.charCodeAt(i)) | 0;
  return ((hash >>> 3) % SHADES) - 3;
}

function shaded(colour: Rgb, shade: number): Rgb {
  const factor = 1 + shade * 0.03;
  return colour.map((part) => Math.min(255, Math.round(part * factor))) as unknown as Rgb;
}

/** Black or white, whichever contrasts more: no colour is left with less than 4.58. */
export function textOn(colour: Rgb): string {
  return contrast(BLACK, colour) > contrast(WHITE, colour) ? "#000000" : "#ffffff";
}

/** Contrast ratio (WCAG 2), from 1 to 21. */
export function contrast(a: Rgb, b: Rgb): number {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

/** Relative luminance (WCAG 2). */
function luminance(colour: Rgb): number {
  const [r, g, b] = colour.map((part) => {
    const c = part / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  }) as unknown as Rgb;
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
