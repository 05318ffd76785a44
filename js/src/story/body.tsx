// The headline, what else there is to know beside it, and the bar: the same wherever a story is told.

import type { ComponentChildren } from "preact";
import { Bar, type BarContent, type BarProps } from "./bar";

/** A text whose numbers stay with their units, and "start-up" in one line. */
export const Held = ({ text }: { text: string }) => (
  <>
    {text
      .split(/([\d.,]+ (?:[nµm]?s\b|%)|start-up)/)
      .map((part, at) => (at % 2 ? <span class="hta-held">{part}</span> : part))}
  </>
);

const beside = (kind: string, text?: string) =>
  text && (
    <p class={`hta-${kind}`}>
      <Held text={text} />
    </p>
  );

export interface BodyProps extends BarProps {
  story: BarContent & { headline: string; limits: string; trust?: string };
  /** it answers another question than the one that was asked last */
  stale?: boolean;
  children?: ComponentChildren;
}

export function StoryBody({ story, stale = false, children, ...bar }: BodyProps) {
  return (
    <div class="hta-story-body" data-stale={stale || undefined}>
      <h2>
        <Held text={story.headline} />
      </h2>
      {beside("muted", story.limits)}
      {beside("trust", story.trust)}
      {story.parts.length > 0 && <Bar story={story} {...bar} />}
      {children}
    </div>
  );
}
