// WhatIf: sliders for changes to a program, and how long the recording would take.

import { signal as makeSignal } from "@preact/signals";
import { Button } from "../button";
import { copyText } from "../export";
import { counted, grouped, percent } from "../format";
import { trait, type View } from "../model";
import type { Link } from "../replay/answer";
import type { Control } from "../replay/controls";
import { Rpc } from "../rpc";
import { adoptStyles, draw } from "../shared";
import { BusyMark, StateNotice, type Status } from "../state";
import { announceView } from "../static_preview";
import css from "../story/story.css";
import { type About, follow, type Hand } from "../what_if/hand";
import { Rows } from "../what_if/rows";
import { Where } from "../what_if/speed_map";
import { WhatIfStory } from "../what_if/story";

const COPIED_MS = 1500;

interface RankOption {
  rank: number;
  label: string;
}

export const whatIf: View = ({ model, el, signal }) => {
  adoptStyles(el, "story", css);
  const rpc = new Rpc(model, signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const about = trait<Partial<About>>(model, "about", signal);
  const controls = trait<Control[]>(model, "controls", signal);
  const options = trait<RankOption[]>(model, "options", signal);
  const rank = trait<number | null>(model, "rank", signal);
  const expression = trait<string>(model, "expression", signal);
  const mapExpression = trait<string>(model, "map_expression", signal);
  const hand = follow(model, rpc, signal);
  const copied = makeSignal(false);
  if (!el.closest(".hta-explorer")) announceView(model, el, signal); // whose picture has this one's answer

  const copy = async () => {
    await copyText(expression.value);
    copied.value = true;
    setTimeout(() => {
      copied.value = false;
    }, COPIED_MS);
  };

  function WhatIf() {
    const whole = hand.whole.value;
    const { job } = about.value;
    const choice = options.value.length > 1 && !job;
    // without an answer, only the reason is shown
    const shown = whole && status.value !== "empty" && status.value !== "error";
    const changed = Object.keys(hand.settings.value).length + hand.further.value.length > 0;
    const confirmed = hand.confirmed.value;
    return (
      <section
        class="hta-what-if"
        aria-label="What if"
        data-live={hand.live.value}
        aria-busy={status.value === "busy"}
      >
        <div class="hta-bar hta-head">
          <h3>What if</h3>
          {choice && hand.frozen && <span class="hta-muted">{`rank ${about.value.rank}`}</span>}
          {choice && !hand.frozen && (
            <label class="hta-form">
              rank{" "}
              <select
                value={String(rank.value ?? about.value.rank ?? "")}
                onChange={(event) => {
                  rank.value = Number(event.currentTarget.value);
                }}
              >
                {options.value.map((option) => (
                  <option key={option.rank} value={String(option.rank)}>
                    {option.label}
                  </option>
                ))}
              </select>
            </label>
          )}
          <BusyMark status={status} />
          <span class="hta-grow" />
          {(shown || changed) && (
            <Button disabled={!changed || !hand.answers.value} onClick={hand.reset}>
              Reset
            </Button>
          )}
          {shown && (confirmed || !hand.frozen) && (
            <Button
              disabled={!confirmed}
              onClick={copy}
              title={confirmed ? `Copy ${expression.value}` : "When the hand rests"}
            >
              {copied.value ? "Copied" : "Copy Python"}
            </Button>
          )}
        </div>
        <StateNotice status={status} message={message} />
        {shown && (
          <>
            <WhatIfStory hand={hand} controls={controls.value} job={job} />
            <Disagreement hand={hand} />
            {hand.frozen && hand.answers.value && hand.further.value.length > 0 && (
              <p class="hta-notice">
                This is the answer that was saved: no slider makes the last changes below. Without them, the
                sliders can be moved.
              </p>
            )}
            <Rows hand={hand} controls={controls.value} />
            {!job && <Where hand={hand} controls={controls.value} python={mapExpression.value} />}
            <Trust about={about.value as About} bound={boundsOf(hand.chain.value, controls.value)} />
          </>
        )}
      </section>
    );
  }
  draw(<WhatIf />, el, signal);
};

/** The browser and the kernel replay the same graph: if they ever differ, the reader must know. */
function Disagreement({ hand }: { hand: Hand }) {
  const [whole, confirmed] = [hand.whole.value, hand.confirmed.value];
  if (!whole || !confirmed || whole.after === confirmed.after) return null;
  return (
    <p class="hta-notice" role="alert" data-severity="error">
      {`Python replays this in ${grouped(confirmed.after)} ns and not in ${grouped(whole.after)} ns: do not use it, and report it.`}
    </p>
  );
}

/** What can be had at most in part, in words. */
function boundsOf(chain: readonly Link[], controls: readonly Control[]): string[] {
  const label = (link: Link) =>
    controls.find(({ name }) => name === link.name)?.label.toLowerCase() ?? link.label ?? link.expression;
  return chain.filter(({ bound }) => bound).map(label);
}

/** What the answer rests on. */
function Trust({ about, bound }: { about: About; bound: readonly string[] }) {
  const error = percent(Math.abs(about.model_error_pct));
  return (
    <div class="hta-muted hta-wi-trust">
      {bound.length > 0 && (
        <p>
          {`An upper bound (${bound.join(", ")}): no program gets all of it, so the saving may be anything down to nothing.`}
        </p>
      )}
      <p title="How far off the time is that is simulated from the dependencies alone">
        {about.job
          ? `All ranks replayed together. Model error ${error} at most. Sliders change one rank by itself: Reset brings them back.`
          : `This rank replayed through its dependencies, while other ranks do what they did. Model error ${error}; ${grouped(about.inferred)} of ${counted(about.edges, "dependency", "dependencies")} inferred.`}
      </p>
    </div>
  );
}
