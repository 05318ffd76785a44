// The bar above the lanes: what the colours mean, how many slices match, and a toggle for the critical path.

import type { Signal } from "@preact/signals";
import { Button } from "../button";
import { grouped } from "../format";
import { CounterMenu, type CounterMenuProps } from "./counter_menu";
import type { Ranked } from "./keys";
import { LaneMenu, type LaneMenuProps } from "./lane_menu";
import { MatchList, type MatchListProps } from "./match_list";
import { colourNames } from "./palette";
import { RankMenu, type RankMenuProps } from "./rank_menu";
import type { Doubtful } from "./types";

export interface BarProps {
  /** event classes that occur */
  classes: readonly number[];
  /** how many slices match, or null if no names are selected */
  matches: Signal<number | null>;
  step(step: 1 | -1): void;
  /** the matches one by one; a new object where others match */
  list: Signal<Omit<MatchListProps, "count">>;
  /** what is hatched */
  doubtful: readonly Doubtful[];
  /** words that choose the lanes */
  lanes: Signal<string | undefined>;
  /** null where all ranks have lanes to begin with */
  ranks: RankMenuProps | null;
  arranging: LaneMenuProps;
  /** where one is among the longest events or gaps */
  ranked: Signal<string>;
  /** goes to the next longest; null where no kernel ranks them */
  goTo: ((what: Ranked) => void) | null;
  /** null where a report has none */
  counters: CounterMenuProps | null;
  path: Signal<boolean>;
  /** which times are shown; null where there is no choice */
  times: Signal<Times> | null;
  timesNote: Signal<string>;
  /** the path: a summary, or why there is none */
  pathStatus: Signal<PathStatus>;
}

export interface PathStatus {
  state: "off" | "busy" | "shown" | "missing";
  text: string;
}

export type Times = "recorded" | "what_if";
const TIMES: [Times, label: string, hint: string][] = [
  ["recorded", "Recorded", "When everything happened"],
  ["what_if", "With changes", "When everything would happen with the changes of What if"],
];

/** What hatching stands for, on a slice and on all lanes of a step; the tip of each gives the reason. */
const HATCHED = { slice: "estimated times", step: "steps left out" };
const hatchedAs = ({ lane }: Doubtful) => (lane === null ? "step" : "slice");

export function Bar(props: BarProps) {
  const {
    classes,
    doubtful,
    matches,
    step,
    list,
    lanes,
    ranked,
    goTo,
    times,
    timesNote,
    counters,
    path,
    pathStatus,
  } = props;
  const count = matches.value;
  const { state, text } = pathStatus.value;
  return (
    <div class="hta-timeline-bar">
      <span class="hta-tools hta-timeline-matches">
        <span role="status">{count === null ? "" : matchesText(count)}</span>
        {count ? (
          <>
            <Step label="Previous match (Shift+N)" text="‹" act={() => step(-1)} />
            <Step label="Next match (N)" text="›" act={() => step(1)} />
            <MatchList {...list.value} count={count} />
          </>
        ) : null}
      </span>
      <input
        type="search"
        class="hta-search hta-lanes"
        aria-label="Filter lanes"
        placeholder="Filter lanes"
        title="Lanes whose rank, kind or name holds this, or after a minus does not: “rank 2, stream, -annotation”"
        spellcheck={false}
        value={lanes.value ?? ""}
        onInput={(event) => {
          lanes.value = event.currentTarget.value;
        }}
      />
      {props.ranks && <RankMenu {...props.ranks} />}
      <LaneMenu {...props.arranging} />
      {goTo && (
        <span class="hta-tools">
          <Button
            title="The longest event of the selection, then the next longest (L)"
            onClick={() => goTo("longest")}
          >
            Longest
          </Button>
          <Button
            title="The longest gap of a device, then the next longest (I)"
            onClick={() => goTo("longest_gaps")}
          >
            Gap
          </Button>
          <span class="hta-muted" role="status">
            {ranked.value}
          </span>
        </span>
      )}
      {times && (
        <fieldset class="hta-tools hta-timeline-times" aria-label="Times">
          {TIMES.map(([value, label, hint]) => (
            <Button
              key={value}
              title={hint}
              aria-pressed={times.value === value}
              onClick={() => {
                times.value = value;
              }}
            >
              {label}
            </Button>
          ))}
        </fieldset>
      )}
      {timesNote.value && (
        <span class="hta-timeline-note hta-cut" role="status" title={timesNote.value}>
          {timesNote.value}
        </span>
      )}
      {counters && <CounterMenu {...counters} />}
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
      <span class="hta-timeline-path hta-muted hta-cut" role="status" data-state={state} title={text}>
        {state === "busy" ? "computing…" : text}
      </span>
      <ul class="hta-legend" aria-label="Colours">
        {colourNames(classes).map((name) => (
          <li key={name}>
            <span class="hta-swatch" style={{ background: `var(--hta-${name})` }} />
            {name}
          </li>
        ))}
        {[...new Set(doubtful.map(hatchedAs))].map((of) => (
          <li key={of}>
            <span class="hta-swatch hta-hatched" data-of={of} />
            {HATCHED[of]}
          </li>
        ))}
      </ul>
    </div>
  );
}

function matchesText(count: number): string {
  return `${count === 0 ? "no" : grouped(count)} ${count === 1 ? "match" : "matches"}`;
}

function Step({ label, text, act }: { label: string; text: string; act(): void }) {
  return (
    <Button aria-label={label} title={label} onClick={act}>
      {text}
    </Button>
  );
}
