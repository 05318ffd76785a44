// The bar above the lanes: what the colours mean, how many slices match, and the switch of the critical path.

import type { Signal } from "@preact/signals";
import { Button } from "../button";
import { grouped } from "../format";
import { colourNames } from "./palette";

export interface BarProps {
  /** event classes that occur */
  classes: readonly number[];
  /** how many slices match, or null if none were asked for */
  matches: Signal<number | null>;
  step(step: 1 | -1): void;
  path: Signal<boolean>;
  /** what there is to say about the path: its answer, or why there is none */
  told: Signal<Told>;
}

export interface Told {
  state: "off" | "busy" | "shown" | "missing";
  text: string;
}

export function Bar({ classes, matches, step, path, told }: BarProps) {
  const count = matches.value;
  const { state, text } = told.value;
  return (
    <div class="hta-timeline-bar">
      <ul class="hta-legend" aria-label="Colours">
        {colourNames(classes).map((name) => (
          <li key={name}>
            <span class="hta-swatch" style={{ background: `var(--hta-${name})` }} />
            {name}
          </li>
        ))}
      </ul>
      <span class="hta-tools hta-timeline-matches">
        <span role="status">{count === null ? "" : matchesText(count)}</span>
        {count ? (
          <>
            <Step label="Previous match (Shift+N)" text="‹" act={() => step(-1)} />
            <Step label="Next match (N)" text="›" act={() => step(1)} />
          </>
        ) : null}
      </span>
      <Button
        aria-pressed={path.value}
        aria-busy={state === "busy"}
        title="Show what the selected iterations or window were waiting for at each instant"
        onClick={() => {
          path.value = !path.value;
        }}
      >
        Critical path
      </Button>
      <span class="hta-timeline-told hta-muted hta-cut" role="status" data-state={state} title={text}>
        {state === "busy" ? "computing…" : text}
      </span>
    </div>
  );
}

export function matchesText(count: number): string {
  return `${count === 0 ? "no" : grouped(count)} ${count === 1 ? "match" : "matches"}`;
}

function Step({ label, text, act }: { label: string; text: string; act(): void }) {
  return (
    <Button aria-label={label} title={label} onClick={act}>
      {text}
    </Button>
  );
}
