// The column beside the timeline: what a finding says, why, what to do, and how sure that is.

import { useState } from "preact/hooks";
import { Button } from "../button";
import { copyText } from "../export";
import { duration } from "../format";
import { Held } from "./body";
import type { Chosen } from "./chosen";
import { type Advice, glyph, isSaving, type Story } from "./story";

/** Where none is shown, the first finding stands here. */
export interface AdviceProps extends Chosen {
  story: Story;
  /** tries the change in "What if"; null where no replay makes it */
  attempt: ((finding: number) => void) | null;
  open(kind: string): void;
  /** what is counted: a finding, or a change between runs */
  noun?: string;
}

export function AdviceColumn(props: AdviceProps) {
  const { story, shown } = props;
  const at = Math.max(0, shown.value);
  const advice = story.advice[at];
  return (
    <section class="hta-advice" aria-label="Advice">
      {advice ? <Finding {...props} advice={advice} at={at} /> : <Nothing {...props} />}
    </section>
  );
}

/** Where nothing is found, the largest kernels are what there is to look at; operators where no device recorded any. */
function Nothing({ story, open }: AdviceProps) {
  const checked = story.clean.length;
  return (
    <>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keys */}
      <section class="hta-advice-text" tabIndex={0} aria-label={story.nothing}>
        <h3>{story.nothing}</h3>
        {story.hint && <p>{story.hint}</p>}
        {checked > 0 && <p>{checked} causes were checked, and none takes 3 % of the time.</p>}
        {story.unknown.map(({ name, remedy }) => (
          <p key={name}>
            <strong>{name}.</strong> {remedy}
          </p>
        ))}
      </section>
      <div class="hta-advice-do">
        <Button onClick={() => open(story.look_at)}>
          {story.look_at === "operators" ? "Longest operators" : "Largest kernels"}
        </Button>
      </div>
    </>
  );
}

function Finding({
  story,
  advice,
  at,
  shown,
  place,
  step,
  toggle,
  attempt,
  open,
  noun = "Finding",
}: AdviceProps & {
  advice: Advice;
  at: number;
}) {
  const part = story.parts.find(({ finding }) => finding === at);
  const many = advice.places.length;
  const of = `of ${duration(story.whole_ns)}${story.per_step ? " per step" : ""}`;
  return (
    <>
      <div class="hta-bar hta-muted hta-advice-place">
        <span>
          {noun} {at + 1} of {story.advice.length}
        </span>
        <span class="hta-grow" />
        {many > 1 && (
          <>
            <span>
              place {(shown.value < 0 ? 0 : place.value) + 1} of {many}
            </span>
            <Button
              class="hta-quiet"
              aria-label="Previous place"
              title="Previous place (,)"
              onClick={() => step(-1)}
            >
              ‹
            </Button>
            <Button class="hta-quiet" aria-label="Next place" title="Next place (.)" onClick={() => step(1)}>
              ›
            </Button>
          </>
        )}
      </div>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, also by keys */}
      <section class="hta-advice-text" tabIndex={0} aria-label={advice.title}>
        <h3>{advice.title}</h3>
        {advice.figure && (
          <p class="hta-figure">
            <strong>{advice.figure}</strong>{" "}
            <span class="hta-muted">{story.whole_ns ? of : "of the time"}</span>
            {advice.own && <span class="hta-muted"> · {advice.own}</span>}
          </p>
        )}
        {part && (
          <div class="hta-saving" aria-hidden="true">
            <span
              class="hta-part"
              data-form={part.form}
              data-class={part.lost_as}
              style={{ width: `${(100 * part.ns) / story.whole_ns}%` }}
            />
          </div>
        )}
        <dl>
          <Said label="What happens" texts={advice.what} />
          <Said label="Why" texts={advice.why} />
          <Said label="What to do" texts={[advice.todo]} />
          <dt>How sure</dt>
          <dd>
            <i {...glyph(advice.form, advice.lost_as)} /> {advice.sure}
          </dd>
          <Said label="Wrong if" texts={[advice.wrong_if]} />
          <Said label="Risk" texts={[advice.risk]} />
          <Said label="Needs" texts={[advice.needs]} />
        </dl>
      </section>
      <div class="hta-advice-do">
        {many > 0 && (
          <Button aria-pressed={shown.value === at} onClick={() => toggle(at)}>
            {shown.value === at ? "Back" : "Show"}
          </Button>
        )}
        {attempt && advice.edits && isOfSavings(advice) && (
          <Button title="Try the change, and more or less of it" onClick={() => attempt(at)}>
            What if…
          </Button>
        )}
        {advice.kind && <Button onClick={() => open(advice.kind)}>Open panel</Button>}
        <Copy text={asText(advice)} />
      </div>
    </>
  );
}

const isOfSavings = (advice: Advice) => isSaving(advice) || advice.form === "hidden";

function Said({ label, texts }: { label: string; texts: string[] }) {
  const said = texts.filter(Boolean);
  if (!said.length) return null;
  return (
    <>
      <dt>{label}</dt>
      {said.map((text) => (
        <dd key={text}>
          <Held text={text} />
        </dd>
      ))}
    </>
  );
}

/** It says that it is done where it was asked to. */
function Copy({ text }: { text: string }) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <Button class="hta-quiet" onClick={copy}>
      {done ? "Copied" : "Copy"}
    </Button>
  );
}

function asText({ title, label, what, why, todo, sure, wrong_if }: Advice): string {
  return [
    `${title} (${label})`,
    ...what,
    ...why,
    todo && `To do: ${todo}`,
    sure,
    wrong_if && `Wrong if: ${wrong_if}`,
  ]
    .filter(Boolean)
    .join("\n");
}
