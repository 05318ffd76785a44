// RunStory: the mean step of each run as a bar, all on one scale. What all runs have stands first, so that what differs
// stands out at the ends; a list says what that is, and the advice beside it how sure and where it shows.

import { effect, type Signal } from "@preact/signals";
import { Button } from "../button";
import { duration } from "../format";
import { trait, type View } from "../model";
import { OPEN } from "../notes";
import { onAbort } from "../page";
import { letter } from "../runs";
import { adoptStyles, draw } from "../shared";
import { MARK, type Mark } from "../showing";
import { BusyMark, StateNotice, type Status } from "../state";
import { AdviceColumn } from "../story/advice";
import { choosesPlaces } from "../story/chosen";
import { type Advice, CLASS, glyph, type Part, type Story } from "../story/story";
import css from "../story/story.css";

interface Piece {
  ns: number;
  lost_as: Part["lost_as"];
  /** the number of the change that makes the step longer; -1 for what all runs have */
  change: number;
}

interface RunBar {
  name: string;
  ns: number;
  pieces: Piece[];
}

interface Change {
  part: string;
  noun: string;
  lost_as: Part["lost_as"];
  change_ns: number;
  figure: string;
  label: string;
  certain: boolean;
  what: string;
  why: string[];
  sure: string;
  kind: string;
  places: { run: string; rank: number; start_ns: number; end_ns: number; label: string }[];
}

/** hta_widgets/analysis/compare/run_story.py describes it. */
interface RunStory {
  cause: string;
  other: string;
  longest_ns: number;
  runs: RunBar[];
  changes: Change[];
}

/** A place in the timeline of a run; null marks none. */
export interface RunMark extends Mark {
  run: string;
}

export const runStory: View = ({ model, el, signal }) => {
  adoptStyles(el, "story", css);
  const content = trait<Partial<RunStory>>(model, "content", signal);
  const shown = trait<number>(model, "shown", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const ask = (event: string, detail: unknown) =>
    el.dispatchEvent(new CustomEvent(event, { detail, bubbles: true, composed: true }));
  const chosen = choosesPlaces(
    el,
    shown,
    () => content.value.changes?.map(({ places }) => places.length) ?? [],
    signal,
  );
  const { place, toggle } = chosen;
  const marks = effect(() => {
    const found = content.value.changes?.[shown.value]?.places[place.value];
    const mark: RunMark | null = found
      ? {
          run: found.run,
          rank: found.rank,
          span: [found.start_ns, found.end_ns],
          label: found.label,
          cause: null,
          ranks: [found.rank],
        }
      : null;
    ask(MARK, mark);
  });
  onAbort(signal, marks);

  function View() {
    const story = content.value as RunStory;
    const busy = status.value === "busy";
    const known = story.runs && status.value !== "empty" && status.value !== "error";
    return (
      <section class="hta-story" aria-label="What changed" aria-busy={busy}>
        <StateNotice status={status} message={message} />
        {known && (
          <div class="hta-story-body hta-compared">
            <p>
              {story.cause} <BusyMark status={status} />
            </p>
            <Bars story={story} {...{ shown, toggle }} />
            {story.changes.length > 0 && (
              <div class="hta-changes">
                <Changes story={story} {...{ shown, toggle }} />
                <AdviceColumn
                  story={asStory(story)}
                  noun="Change"
                  {...chosen}
                  attempt={null}
                  open={(kind) => ask(OPEN, kind)}
                />
              </div>
            )}
          </div>
        )}
      </section>
    );
  }
  draw(<View />, el, signal);
};

interface ShownProps {
  story: RunStory;
  shown: Signal<number>;
  toggle(change: number): void;
}

const formOf = (change: Change | undefined) => (change?.certain ? "differs" : "doubtful");

function Bars({ story, shown, toggle }: ShownProps) {
  return (
    <dl class="hta-run-bars">
      {story.runs.map((run, at) => (
        <div key={run.name}>
          <dt title={run.name}>
            <span class="hta-letter" data-base={at === 0 || undefined}>
              {letter(at)}
            </span>
          </dt>
          <dd class="hta-segments" aria-hidden="true">
            {run.pieces.map(({ ns, lost_as, change }, number) => {
              const found = story.changes[change];
              const more = found
                ? `${found.noun}: ${duration(ns)} more here`
                : `${CLASS[lost_as]} ${duration(ns)}`;
              return (
                // biome-ignore lint/a11y/noStaticElementInteractions lint/a11y/useKeyWithClickEvents: the list has a button for it
                <span
                  key={`${lost_as} ${change} ${number}`}
                  class="hta-seg hta-part"
                  data-form={found ? formOf(found) : "rest"}
                  data-class={lost_as}
                  data-shown={(found && shown.value === change) || undefined}
                  title={more}
                  style={{ width: `${(100 * ns) / story.longest_ns}%` }}
                  onClick={() => found && toggle(change)}
                />
              );
            })}
          </dd>
          <dd class="hta-run-length">
            <strong>{duration(run.ns)}</strong> <span class="hta-muted">per step</span>
          </dd>
        </div>
      ))}
    </dl>
  );
}

/** One row a change: its number is the key that opens it. */
function Changes({ story, shown, toggle }: ShownProps) {
  return (
    <ol class="hta-change-list">
      {story.changes.map((change, at) => (
        <li key={change.part}>
          <Button
            aria-pressed={shown.value === at}
            aria-label={`Change ${at + 1}: ${change.noun}, ${change.label}`}
            onClick={() => toggle(at)}
          >
            <span class="hta-number">{at + 1}</span>
            <i {...glyph(formOf(change), change.lost_as)} />
            <span class="hta-grow">{change.noun}</span>
            <span>{change.label}</span>
          </Button>
        </li>
      ))}
    </ol>
  );
}

/** As the column of advice takes it: between runs there is nothing to do, only to see. */
function asStory({ changes, longest_ns }: RunStory): Story {
  const advice = changes.map(
    (change): Advice => ({
      ...change,
      topic: change.part,
      title: `${change.noun} takes ${change.change_ns < 0 ? "less" : "more"}`,
      form: formOf(change),
      what: [change.what],
      ranks: [],
      places: change.places.map((place) => ({ ...place, cause: null })),
      todo: "",
      wrong_if: "",
      risk: "",
      needs: "",
      own: "",
      edits: "",
    }),
  );
  const parts = changes.map((change, finding) => ({
    ns: Math.abs(change.change_ns),
    form: formOf(change),
    lost_as: change.lost_as,
    finding,
  })) as Part[];
  return {
    scope: "",
    narrowed: false,
    headline: "",
    limits: "",
    trust: "",
    whole_ns: longest_ns,
    per_step: true,
    parts,
    saved: "",
    remains: "",
    advice,
    clean: [],
    unknown: [],
    asides: [],
    kinds: [],
    nothing: "",
    hint: "",
    look_at: "",
  };
}
