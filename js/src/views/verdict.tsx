// Verdict: what costs most time, as cards; each says what a change saves, why, and shows its evidence.

import { effect, signal as makeSignal } from "@preact/signals";
import { Button } from "../button";
import { trait, type View } from "../model";
import { OPEN } from "../notes";
import { onAbort } from "../page";
import { draw } from "../shared";
import { type Evidence, SHOW, type Shown, TRY } from "../showing";
import { BusyMark, StateNotice, type Status } from "../state";

/** hta_widgets/widgets/verdict.py describes it. */
interface Card {
  title: string;
  severity: string;
  text: string;
  figure: string;
  caption: string;
  /** the same of a step, "" if unknown */
  per_step: string;
  how: string;
  span: number[];
  saving: string;
  suggestion: string;
  /** what that takes, and what may go wrong with it */
  caveat: string;
  replayed: boolean;
  evidence: Evidence | null;
}

const ALL = "overview";

export const verdict: View = ({ model, el, signal }) => {
  const cards = trait<Card[]>(model, "cards", signal);
  const sentence = trait<string>(model, "sentence", signal);
  const together = trait<string | undefined>(model, "together", signal);
  const further = trait<string>(model, "further", signal);
  const shown = trait<number>(model, "shown", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const explained = makeSignal(-1);

  let told = shown.value;
  const tell = effect(() => {
    const at = shown.value;
    if (at === told) return;
    told = at;
    const card = cards.peek()[at];
    const evidence = card?.evidence;
    const back = () => {
      shown.value = -1;
    };
    const detail: Shown | null = card && evidence ? { title: card.title, evidence, back } : null;
    el.dispatchEvent(new CustomEvent(SHOW, { detail, bubbles: true, composed: true }));
  });
  onAbort(signal, tell);

  const frozen = model.get("frozen") === true; // a report: no kernel replays
  const ask = (event: string, detail: unknown) =>
    el.dispatchEvent(new CustomEvent(event, { detail, bubbles: true, composed: true }));
  const openAll = () => ask(OPEN, ALL);

  function Verdict() {
    const some = cards.value.length > 0;
    return (
      <section class="hta-verdict" aria-label="Verdict" aria-busy={status.value === "busy"}>
        <StateNotice status={status} message={message} />
        {status.value === "busy" && !sentence.value && (
          <p class="hta-verdict-wait hta-muted" role="status">
            Looking for what costs time…
          </p>
        )}
        {some ? (
          <ol class="hta-cards">
            {cards.value.map((card, at) => (
              <CardOf
                key={card.title}
                card={card}
                shown={shown.value === at}
                show={() => {
                  shown.value = shown.value === at ? -1 : at;
                }}
                attempt={card.replayed && !frozen ? () => ask(TRY, at) : null}
                explained={explained.value === at}
                explain={() => {
                  explained.value = explained.value === at ? -1 : at;
                }}
              />
            ))}
          </ol>
        ) : (
          sentence.value && <p class="hta-verdict-none">{sentence.value}</p>
        )}
        {sentence.value && (
          <div class="hta-bar hta-verdict-foot">
            {together.value && <span class="hta-verdict-together">{together.value}</span>}
            <span class="hta-muted hta-cut" title={further.value}>
              {further.value}
            </span>
            <BusyMark status={status} />
            <span class="hta-grow" />
            <Button class="hta-quiet hta-verdict-all" onClick={openAll}>
              All findings
            </Button>
          </div>
        )}
      </section>
    );
  }
  draw(<Verdict />, el, signal);
};

interface CardProps {
  card: Card;
  shown: boolean;
  show(): void;
  /** tries the change in "What if"; null where no replay makes it */
  attempt: (() => void) | null;
  explained: boolean;
  explain(): void;
}

function CardOf({ card, shown, show, attempt, explained, explain }: CardProps) {
  return (
    <li class="hta-card" data-severity={card.severity} data-shown={shown}>
      <h3>{card.title}</h3>
      <p class="hta-card-text" title={card.text}>
        {card.text}
      </p>
      {card.figure && (
        <p class="hta-card-figure">
          <strong>{card.figure}</strong>{" "}
          <span class="hta-muted">{[card.caption, card.per_step].filter(Boolean).join(" · ")}</span>
        </p>
      )}
      <Span span={card.span} />
      <div class="hta-bar">
        {card.evidence && (
          <Button
            class="hta-card-show"
            aria-label={`${shown ? "Back from" : "Show"} ${card.title}`}
            title={
              shown
                ? "Back to what was selected and visible before"
                : "Zoom to the evidence and open its panel"
            }
            onClick={show}
          >
            {shown ? "Back" : "Show"}
          </Button>
        )}
        <span class="hta-muted hta-cut" title={card.how}>
          {card.how}
        </span>
        <span class="hta-grow" />
        {attempt && (
          <Button
            class="hta-quiet hta-card-ask"
            title="Try the change, and more or less of it"
            onClick={attempt}
          >
            What if…
          </Button>
        )}
        {card.suggestion && (
          <Button class="hta-quiet hta-card-todo hta-card-ask" aria-expanded={explained} onClick={explain}>
            What to do
          </Button>
        )}
      </div>
      {explained && (
        <p class="hta-card-more">
          {card.suggestion} {card.caveat} <span class="hta-muted">{card.saving}</span>
        </p>
      )}
    </li>
  );
}

/** From the least to the most that is saved, with the estimate marked; the text beside it says the same. */
function Span({ span: [low, estimate, high] }: { span: readonly number[] }) {
  if (low === undefined || estimate === undefined || high === undefined) return null;
  return (
    <div class="hta-span" aria-hidden="true">
      <span style={{ left: `${low}%`, width: `${high - low}%` }} />
      <i style={{ left: `${estimate}%` }} />
    </div>
  );
}
