// The step as one bar: savings first, then what remains. Labels stand over the savings, or below as a list.

import type { Signal } from "@preact/signals";
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import { counted, duration, fromTo } from "../format";
import { consume } from "../page";
import { combined } from "../shared";
import { type Advice, CLASS, glyph, isSaving, LEAST, type Part, type Story } from "./story";

/** Room that a letter of 11 px takes, and that is left beside a text. */
const LETTER = 6.2;
const ROOM = 12;
const BETWEEN = 16;
/** A narrower bar has its labels in a list. */
const LEAST_WIDE = 860;

export interface BarContent extends Pick<Story, "whole_ns" | "parts" | "saved" | "remains"> {
  advice: Pick<Advice, "topic" | "noun" | "label">[];
}

export interface BarProps {
  story: BarContent;
  shown: Signal<number>;
  toggle(finding: number): void;
  /** what is numbered: a finding, or a change */
  noun?: string;
}

export function Bar({ story, shown, toggle, noun = "Finding" }: BarProps) {
  const root = useRef<HTMLElement>(null);
  const [width, setWidth] = useState(0);
  const { parts, whole_ns: whole, advice } = story;
  useLayoutEffect(() => {
    const el = root.current;
    if (!el) return;
    const resize = new ResizeObserver(() => setWidth(el.clientWidth));
    resize.observe(el);
    return () => resize.disconnect();
  }, []);
  const starts = parts.map((_, at) => parts.slice(0, at).reduce((sum, part) => sum + part.ns, 0) / whole);
  const labelled = parts.flatMap((part, at) =>
    part.finding >= 0 && part.ns >= LEAST * whole ? [{ part, start: starts[at] as number }] : [],
  );
  const more = advice.length - labelled.length; // too little to have a part of the bar
  const saved = parts.filter(isSaving).reduce((sum, part) => sum + part.ns, 0) / whole;
  const [stop, setStop] = useState(0);
  const move = (event: KeyboardEvent, at: number) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (combined(event) || !step) return;
    consume(event);
    const next = Math.min(Math.max(at + step, 0), labelled.length - 1);
    setStop(next);
    root.current?.querySelectorAll<HTMLElement>("button.hta-seg")[next]?.focus();
  };
  const rest = parts.filter((part) => part.form === "rest");
  return (
    <section ref={root} class="hta-whole" aria-label="Where the time goes">
      <Labels labelled={labelled} {...{ story, width, shown, toggle }} />
      <div class="hta-segments">
        {parts.map((part, at) => {
          const share = part.ns / whole;
          const style = { width: `${100 * share}%` };
          const number = labelled.findIndex((one) => one.part === part);
          if (number < 0) {
            const text = `${CLASS[part.lost_as]} ${duration(part.ns)}`;
            const fits = share * width > text.length * LETTER + ROOM;
            return (
              <span
                key={`${part.form} ${part.lost_as} ${at}`}
                class="hta-seg hta-part"
                title={text}
                {...data(part)}
                {...{ style }}
              >
                {fits && part.form === "rest" && text}
              </span>
            );
          }
          const told = advice[part.finding];
          return (
            <button
              type="button"
              key={told?.topic}
              class="hta-seg hta-part"
              {...data(part)}
              {...{ style }}
              tabIndex={number === Math.min(stop, labelled.length - 1) ? 0 : -1}
              aria-pressed={shown.value === part.finding}
              aria-label={`${noun} ${part.finding + 1}: ${told?.noun}, ${told?.label}`}
              title={`${told?.noun}: ${told?.label}`}
              onClick={() => {
                setStop(number);
                toggle(part.finding);
              }}
              onKeyDown={(event) => move(event, number)}
            >
              {share * width >= 32 && <span class="hta-number">{part.finding + 1}</span>}
            </button>
          );
        })}
      </div>
      <div class="hta-brackets" aria-hidden="true">
        {saved > 0 && <span style={{ width: `${100 * saved}%` }} />}
        <span style={{ width: `${100 * (1 - saved)}%` }} />
      </div>
      <div class="hta-under">
        {(story.saved || more > 0) && (
          <span>
            {story.saved && <Bold text={story.saved} />}
            {more > 0 && `${story.saved && " · "}${counted(more, `more ${noun.toLowerCase()}`)}`}
          </span>
        )}
        <span class="hta-legend-line">
          <span>
            <Bold text={story.remains} />
            {rest.length > 0 && ":"}
          </span>
          {rest.map((part) => (
            <span key={part.lost_as} class="hta-key-of">
              <i {...glyph("rest", part.lost_as)} />
              {CLASS[part.lost_as]} {fromTo(part.from_ns ?? part.ns, part.ns)}
            </span>
          ))}
        </span>
      </div>
    </section>
  );
}

const data = ({ form, lost_as }: Part) => ({ "data-form": form, "data-class": lost_as });

/** `2.25 ms can be saved`: the number with its unit is what counts. */
function Bold({ text }: { text: string }) {
  const [number = "", unit = "", ...words] = text.split(" ");
  return (
    <>
      <strong>
        {number} {unit}
      </strong>{" "}
      {words.join(" ")}
    </>
  );
}

interface LabelsProps extends BarProps {
  labelled: { part: Part; start: number }[];
  width: number;
}

/** Labels never overlap: each stands at its part, or as far to the right as the one before it needs. */
function Labels({ labelled, story, width, shown, toggle }: LabelsProps) {
  const root = useRef<HTMLOListElement>(null);
  const [places, setPlaces] = useState<number[]>([]);
  useLayoutEffect(() => {
    const list = root.current as HTMLElement;
    list.toggleAttribute("data-list", false); // each as wide as its text
    const widths = [...list.children].map((item) => (item.firstElementChild as HTMLElement).offsetWidth);
    const next = placed(
      labelled.map(({ start }) => start * width),
      widths,
      width,
    );
    list.toggleAttribute("data-list", width < LEAST_WIDE || next.some((left) => left < 0));
    setPlaces(next);
  }, [width, story]);
  return (
    <ol ref={root} class="hta-labels" aria-hidden="true">
      {labelled.map(({ part, start }, at) => {
        const told = story.advice[part.finding];
        const left = places[at] ?? 0;
        return (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the part of the bar is what keys reach
          <li
            key={told?.topic}
            data-shown={shown.value === part.finding}
            style={{ left: `${left}px`, "--hta-elbow": `${Math.max(0, left - start * width)}px` }}
            onClick={() => toggle(part.finding)}
          >
            <span>
              <strong>
                {part.finding + 1} {told?.noun}
              </strong>
              <span>
                <i {...glyph(part.form, part.lost_as)} /> {told?.label}
              </span>
            </span>
          </li>
        );
      })}
    </ol>
  );
}

/** Where labels of these widths stand; -1 where they do not fit beside each other. */
export function placed(starts: readonly number[], widths: readonly number[], width: number): number[] {
  const needed = widths.reduce((sum, own) => sum + own + BETWEEN, -BETWEEN);
  if (needed > width) return starts.map(() => -1);
  const places: number[] = [];
  let from = 0;
  starts.forEach((start, at) => {
    const left = Math.max(start, from);
    places.push(left);
    from = left + (widths[at] as number) + BETWEEN;
  });
  let until = width;
  for (let at = places.length - 1; at >= 0; at--) {
    places[at] = Math.max(0, Math.min(places[at] as number, until - (widths[at] as number)));
    until = (places[at] as number) - BETWEEN;
  }
  return places;
}
