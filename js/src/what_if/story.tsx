// The answer in the form of the first screen: a headline, one bar from what was recorded to what is left, and a sentence
// for each change.

import { useSignal } from "@preact/signals";
import { counted, duration, fromTo, grouped, percent, signed } from "../format";
import type { Link, Whole } from "../replay/answer";
import type { Control, Settings } from "../replay/controls";
import type { BarContent } from "../story/bar";
import { StoryBody } from "../story/body";
import { glyph, type Part } from "../story/story";
import type { Hand } from "./hand";

const CLASSES = ["compute", "communication", "memory", "idle"] as const;
const MOST_NAMED = 2;

interface Timed extends Whole {
  chain: readonly Link[];
}

interface StoryProps {
  hand: Hand;
  controls: readonly Control[];
  /** what is timed where all ranks are replayed together */
  job?: string | undefined;
}

/** Of the mean step where the kernel has timed it, else of the recording. */
export function WhatIfStory({ hand, controls, job }: StoryProps) {
  const shown = useSignal(-1);
  const whole = hand.whole.value as Whole;
  const step = hand.confirmed.value?.step;
  const given: Timed = step ?? { ...whole, chain: hand.chain.value };
  // while the hand moves, what each change saves is found after what they save together
  const known = given.chain.at(-1)?.together === given.after;
  const times = known ? given : { ...given, chain: [] };
  const answered = hand.live.value ? null : hand.known.value;
  const made = changes(
    controls,
    answered?.settings ?? hand.settings.value,
    (answered?.further ?? hand.further.value).map(
      (expression) => linkOf(hand, expression)?.label ?? expression,
    ),
  );
  const { before, low, after, high } = times;
  const beside = [
    ...(made.length ? [`${change(before, after)}.`] : []),
    ...(low !== high ? [`Between ${duration(low)} and ${duration(high)}.`] : []),
    ...(job ? [`${job}.`] : []),
    ...(step && step.count > 1 ? [`The mean of ${counted(step.count, "step")}.`] : []),
    ...(step?.clock === "device period" ? ["From the first GPU work of a step to that of the next."] : []),
    ...(step ? [`The whole recording: ${fromTo(whole.before, whole.after)}.`] : []),
  ];
  const words = headline(times, step || job ? "per step" : "for the recording", made);
  const content = barOf(times, controls);
  return (
    <div class="hta-wi-story">
      <section class="hta-story" aria-label="What the changes save">
        <StoryBody
          noun="Change"
          story={{ ...content, headline: words, limits: beside.join(" ") }}
          stale={hand.stale.value}
          shown={shown}
          toggle={(at) => {
            shown.value = shown.value === at ? -1 : at;
          }}
        >
          {content.advice.length > 0 && (
            <ol class="hta-wi-changes">
              {times.chain.map((link, at) => (
                <li key={link.name || link.expression} data-shown={shown.value === at}>
                  <span class="hta-number">{at + 1}</span>
                  <i {...glyph(formOf(link), "idle")} />
                  <span>{sentence(times, at, controls)}</span>
                </li>
              ))}
            </ol>
          )}
        </StoryBody>
      </section>
    </div>
  );
}

const formOf = ({ bound }: Link): Part["form"] => (bound ? "bound" : "simulated");

/** "16.2 → 12.9 ms per step with host 2× as fast"; as hta_widgets/widgets/what_if_answer.py has it. */
function headline({ before, after }: Timed, per: string, made: readonly string[]): string {
  if (!made.length) return `${duration(before)} ${per}, as recorded`;
  const more = made.length - MOST_NAMED;
  const named = more > 0 ? [...made.slice(0, MOST_NAMED), counted(more, "more change")] : made;
  const last = named.at(-1) as string;
  const words = named.length > 1 ? `${named.slice(0, -1).join(", ")} and ${last}` : last;
  return `${fromTo(before, after)} ${per} with ${words}`;
}

/** The changes in words. */
function changes(controls: readonly Control[], settings: Settings, further: readonly string[]): string[] {
  const made = controls.flatMap(({ name, label, off }) => {
    const time = settings[name];
    if (time === undefined) return [];
    const noun = `${label.slice(0, 1).toLowerCase()}${label.slice(1)}`;
    if (off) return [`no ${noun}`];
    return [time ? `${noun} ${grouped(Math.round(100 / time) / 100)}× as fast` : `${noun} taking no time`];
  });
  return [...made, ...further];
}

/** "19.3 % less" */
function change(before: number, after: number): string {
  if (before === after) return "no change";
  const share = (100 * Math.abs(after - before)) / Math.max(before, 1);
  return `${percent(share)} ${after < before ? "less" : "more"}`;
}

function sentence({ before, chain }: Timed, at: number, controls: readonly Control[]): string {
  const link = chain[at] as Link;
  const first = at === 0;
  const adds = said(chain[at - 1]?.together ?? before, link.together, link.bound);
  const alone = first ? "" : `; ${said(before, link.alone, link.bound)} on its own`;
  return `${nounOf(link, controls)}: ${adds}${first ? "" : " on top of the changes before it"}${alone}.`;
}

function said(from: number, to: number, bound: boolean): string {
  if (from === to) return "saves nothing";
  const size = duration(Math.abs(from - to));
  return to < from ? `saves ${size}${bound ? " at most" : ""}` : `costs ${size}`;
}

export const linkOf = ({ chain }: Hand, expression: string) =>
  chain.value.find((link) => link.expression === expression);

export const nounOf = ({ name, label, expression }: Link, controls: readonly Control[]) =>
  controls.find((control) => control.name === name)?.label ??
  (label ? `${label.slice(0, 1).toUpperCase()}${label.slice(1)}` : expression);

/**
 * Savings first, then what is left by class; they add up to the recorded time, or to the time after changes that make
 * it longer.
 */
export function barOf(times: Timed, controls: readonly Control[]): BarContent {
  const { before, after, chain, parts_before, parts_after } = times;
  const end = Math.min(after, before);
  let left = before;
  const savings = chain.map((_, at) => {
    // of savings that later changes take back, what stays
    const now = Math.max(end, Math.min(left, (chain[at] as Link).together));
    const part: Part = {
      ns: left - now,
      form: formOf(chain[at] as Link),
      lost_as: "idle",
      finding: at,
    };
    left = now;
    return part;
  });
  const together: Part[] =
    left > end ? [{ ns: left - end, form: "simulated", lost_as: "all", finding: -1 }] : [];
  const rest: Part[] = parts_after.length
    ? parts_after.map((ns, at) => ({
        ns,
        from_ns: parts_before[at] as number,
        form: "rest",
        lost_as: CLASSES[at] as Part["lost_as"],
        finding: -1,
      }))
    : [{ ns: after, form: "rest", lost_as: "all", finding: -1 }];
  const saved = before - after;
  return {
    whole_ns: Math.max(before, after, 1),
    parts: [...savings, ...together, ...rest.filter(({ ns, from_ns }) => ns || from_ns)],
    saved: saved > 0 ? `${duration(saved)} saved (${percent((100 * saved) / before)})` : "",
    remains: `${duration(after)} ${saved > 0 ? "remain" : saved < 0 ? `in all, ${duration(-saved)} more` : "in all"}`,
    advice: chain.map((link, at) => {
      const adds = (chain[at - 1]?.together ?? before) - link.together;
      const known = link.bound ? "upper bound" : "simulated";
      return {
        topic: link.name || link.expression,
        noun: nounOf(link, controls),
        label: `${signed(-adds, duration(-adds))} · ${known}`,
      };
    }),
  };
}
