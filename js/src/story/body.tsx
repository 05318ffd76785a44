// The headline, what else there is to know beside it, and the bar: the same wherever a story is told.

import type { ComponentChildren } from "preact";
import { Bar, type BarContent, type BarProps } from "./bar";

export interface BodyProps extends BarProps {
  story: BarContent & { headline: string; limits: string; trust?: string };
  /** it answers another question than the one that was asked last */
  stale?: boolean;
  children?: ComponentChildren;
}

export function StoryBody({ story, stale = false, children, ...bar }: BodyProps) {
  return (
    <div class="hta-story-body" data-stale={stale || undefined}>
      <h2>{story.headline}</h2>
      {story.limits && <p class="hta-muted">{story.limits}</p>}
      {story.trust && <p class="hta-trust">{story.trust}</p>}
      {story.parts.length > 0 && <Bar story={story} {...bar} />}
      {children}
    </div>
  );
}
