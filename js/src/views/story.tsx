// Story: what all numbers are of, one headline, one bar, and what was checked. The advice stands beside the timeline.

import { effect } from "@preact/signals";
import type { ComponentType } from "preact";
import { Button } from "../button";
import { counted } from "../format";
import { trait, type View } from "../model";
import { OPEN } from "../notes";
import { onAbort } from "../page";
import { Popover } from "../popover";
import { adoptStyles, draw } from "../shared";
import { MARK, type Mark, TRY, WHOLE } from "../showing";
import { BusyMark, StateNotice, type Status } from "../state";
import { AdviceColumn } from "../story/advice";
import { Held, StoryBody } from "../story/body";
import { choosesPlaces } from "../story/chosen";
import type { Story } from "../story/story";
import css from "../story/story.css";

/** `detail`: what stands elsewhere than the story itself, for the explorer to place. */
export const PIECES = "hta-story-pieces";

export interface Pieces {
  /** says what all numbers are of, and stays in sight */
  Scope: ComponentType;
  /** says what the shown finding advises */
  Advice: ComponentType;
}

export const story: View = ({ model, el, signal }) => {
  adoptStyles(el, "story", css);
  const content = trait<Partial<Story>>(model, "content", signal);
  const shown = trait<number>(model, "shown", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const frozen = model.get("frozen") === true; // a report: no kernel replays
  const ask = (event: string, detail?: unknown) =>
    el.dispatchEvent(new CustomEvent(event, { detail, bubbles: true, composed: true }));
  const chosen = choosesPlaces(
    el,
    shown,
    () => content.value.advice?.map(({ places }) => places.length) ?? [],
    signal,
  );
  const { place, toggle } = chosen;
  const marks = effect(() => {
    const advice = content.value.advice?.[shown.value];
    const found = advice?.places[place.value];
    const mark: Mark | null =
      (advice &&
        found && {
          rank: found.rank,
          span: [found.start_ns, found.end_ns],
          label: found.label,
          cause: found.cause,
          ranks: advice.ranks.includes(found.rank) ? advice.ranks : [...advice.ranks, found.rank],
        }) ||
      null;
    ask(MARK, mark);
  });
  onAbort(signal, marks);

  const Advice = () =>
    content.value.headline ? (
      <AdviceColumn
        story={content.value as Story}
        {...chosen}
        attempt={frozen ? null : (finding) => ask(TRY, finding)}
        open={(kind) => ask(OPEN, kind)}
      />
    ) : null;
  const Scope = () => {
    const told = content.value as Story;
    if (!told.headline)
      return status.value === "busy" ? (
        <div class="hta-scope hta-muted">Numbers come once ranks are read</div>
      ) : null;
    return (
      <div class="hta-scope" data-narrowed={told.narrowed}>
        <span aria-live="polite">
          <span class="hta-muted">All numbers are for</span>{" "}
          <strong>
            <Held text={told.scope} />
          </strong>
        </span>
        {told.narrowed && !frozen && <Button onClick={() => ask(WHOLE)}>Whole job ×</Button>}
        <BusyMark status={status} />
      </div>
    );
  };
  ask(PIECES, { Scope, Advice } satisfies Pieces);

  function View() {
    const told = content.value as Story;
    const busy = status.value === "busy";
    if (!told.headline)
      return (
        <section class="hta-story" aria-label="Findings" aria-busy={busy}>
          <StateNotice status={status} message={message} />
          {busy && (
            <>
              <h2>
                <span role="status">Looking for what costs time</span>
              </h2>
              <div class="hta-progress" data-unknown>
                <div />
              </div>
            </>
          )}
        </section>
      );
    return (
      <section class="hta-story" aria-label="Findings" aria-busy={busy}>
        <StateNotice status={status} message={message} />
        <StoryBody story={told} {...{ shown, toggle }} />
        <Checks story={told} open={() => ask(OPEN, "overview")} />
      </section>
    );
  }
  draw(<View />, el, signal);
};

function Checks({ story, open }: { story: Story; open(): void }) {
  const { advice, clean, unknown, asides } = story;
  const label = [
    counted(advice.length, "finding"),
    ...(clean.length ? [`${counted(clean.length, "check")} clean`] : []),
    ...(unknown.length ? [`${unknown.length} ${unknown.length === 1 ? "needs" : "need"} more data`] : []),
    ...(asides.length ? [counted(asides.length, "remark")] : []),
  ]
    .map((part) => part.replaceAll(" ", "\xa0"))
    .join(" · ");
  return (
    <div class="hta-checks">
      <Popover label={label} title="What was checked" pressed={false}>
        <div class="hta-checked">
          {unknown.map(({ name, remedy }) => (
            <p key={name}>
              <strong>? {name}</strong> {remedy}
            </p>
          ))}
          {asides.map((text) => (
            <p key={text}>{text}</p>
          ))}
          {clean.length > 0 && (
            <ul class="hta-clean">
              {clean.map((name) => (
                <li key={name}>
                  <span aria-hidden="true">✓</span> {name}
                </li>
              ))}
            </ul>
          )}
        </div>
      </Popover>
      <Button class="hta-quiet hta-all-findings" onClick={open}>
        All findings
      </Button>
      <span class="hta-grow" />
      {advice.length > 0 && (
        <span class="hta-muted hta-keys-hint">
          <span class="hta-key">1</span>
          {advice.length > 1 && (
            <>
              –<span class="hta-key">{Math.min(advice.length, 9)}</span>
            </>
          )}{" "}
          opens a finding · <span class="hta-key">Esc</span> back
        </span>
      )}
    </div>
  );
}
