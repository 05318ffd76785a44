// One row for each slider and switch, and for each edit that neither makes.

import { useId } from "preact/hooks";
import { Button } from "../button";
import { grouped } from "../format";
import type { Control } from "../replay/controls";
import type { Hand } from "./hand";
import { linkOf, nounOf } from "./story";

const SLOWEST = 200; // % of the recorded time, at the left end
const STEP = 5;

export function Rows({ hand, controls }: { hand: Hand; controls: readonly Control[] }) {
  return (
    <div class="hta-wi-rows">
      <span class="hta-fact-label">Change</span>
      <span class="hta-fact-label">{controls.length > 0 && "Slower ← as recorded → faster"}</span>
      <span class="hta-fact-label">{controls.length > 0 && "Time left"}</span>
      {controls.map((control) => (
        <Row key={control.name} {...{ hand, control }} />
      ))}
      {hand.further.value.map((expression) => (
        <Further key={expression} {...{ hand, expression }} />
      ))}
    </div>
  );
}

function Row({ hand, control }: { hand: Hand; control: Control }) {
  const time = hand.settings.value[control.name] ?? 1;
  const disabled = control.nothing || !hand.ready.value;
  const id = useId();
  const text = control.nothing ? "not in this recording" : left(control, time);
  return (
    <div class="hta-wi-row" data-nothing={control.nothing || undefined} data-control={control.name}>
      <label for={id} title={control.hint}>
        {control.label}
      </label>
      {control.off ? (
        <label class="hta-wi-switch">
          <input
            id={id}
            type="checkbox"
            checked={time === 0}
            disabled={disabled}
            onChange={(event) => {
              hand.move(control, event.currentTarget.checked ? 0 : 1);
              hand.commit();
            }}
          />
          {control.off}
        </label>
      ) : (
        <input
          id={id}
          type="range"
          min={0}
          max={SLOWEST}
          step={STEP}
          value={SLOWEST - 100 * time}
          style={fill(time)}
          disabled={disabled}
          aria-valuetext={text}
          onInput={(event) => hand.move(control, (SLOWEST - Number(event.currentTarget.value)) / 100)}
          onDblClick={() => hand.move(control, 1)}
        />
      )}
      <span class={time === 1 ? "hta-muted" : ""}>{text}</span>
    </div>
  );
}

/** Where a slider is filled: from "as recorded", in the middle, to its thumb; shares of its length. */
function fill(time: number): Record<string, number> {
  const at = Math.max(0, 1 - (100 * time) / SLOWEST);
  return { "--hta-from": Math.min(at, 0.5), "--hta-to": Math.max(at, 0.5) };
}

function Further({ hand, expression }: { hand: Hand; expression: string }) {
  const link = linkOf(hand, expression);
  const Words = link?.label ? "span" : "code";
  return (
    <div class="hta-wi-row">
      <Words class="hta-cut" title={expression}>
        {link ? nounOf(link, []) : expression}
      </Words>
      <Button
        class="hta-quiet"
        disabled={!hand.answers.value}
        onClick={() => {
          hand.further.value = hand.further.value.filter((other) => other !== expression);
        }}
      >
        Drop
      </Button>
    </div>
  );
}

/** What is left of the time, in words. */
function left({ off, name }: Control, time: number): string {
  if (off) return "";
  if (time === 1) return "as recorded";
  if (time === 0) return name === "host" || name === "launches" ? "free" : "none";
  const speed = time < 1 ? `, ${grouped(Math.round(100 / time) / 100)}× as fast` : "";
  return `${grouped(Math.round(100 * time))} %${speed}`;
}
