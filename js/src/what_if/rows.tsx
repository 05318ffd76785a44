// One row for each slider and switch, and beside it what it adds to the saving: a waterfall down the rows.

import { useId } from "preact/hooks";
import { Button } from "../button";
import { duration, grouped } from "../format";
import type { Link } from "../replay/answer";
import type { Control } from "../replay/controls";
import { change } from "./figures";
import type { Hand } from "./hand";

const SLOWEST = 200; // % of the recorded time, at the left end
const STEP = 5;

export function Rows({ hand, controls }: { hand: Hand; controls: readonly Control[] }) {
  const whole = hand.whole.value;
  const chain = hand.chain.value;
  const scale = whole && scaleOf(whole.before, chain);
  const fall = (link: Link | undefined) => {
    if (!whole || !scale || !link) return null;
    const at = chain.indexOf(link);
    const from = at > 0 ? (chain[at - 1] as Link).together : whole.before;
    return <Fall scale={scale} before={whole.before} from={from} to={link.together} alone={link.alone} />;
  };
  return (
    <div class="hta-wi-rows">
      <span class="hta-fact-label">Change</span>
      <span class="hta-fact-label">Slower ← as recorded → faster</span>
      <span class="hta-fact-label">Time left</span>
      <span class="hta-fact-label">{chain.length > 0 && "Saves, added up from above"}</span>
      <span class="hta-fact-label hta-wi-alone">{chain.length > 0 && "Alone"}</span>
      {controls.map((control) => (
        <Row key={control.name} {...{ hand, control }}>
          {fall(chain.find((link) => link.name === control.name))}
        </Row>
      ))}
      {hand.further.value.map((expression) => (
        <Further key={expression} {...{ hand, expression }}>
          {fall(chain.find((link) => link.expression === expression && !link.name))}
        </Further>
      ))}
      {whole && scale && chain.length > 1 && (
        <div class="hta-wi-row hta-wi-total">
          <strong>Together</strong>
          <span />
          <span />
          <Fall
            scale={scale}
            before={whole.before}
            from={whole.before}
            to={whole.after}
            alone={whole.after}
          />
        </div>
      )}
    </div>
  );
}

interface RowProps {
  hand: Hand;
  control: Control;
  // biome-ignore lint/suspicious/noExplicitAny: whatever Preact draws
  children: any;
}

function Row({ hand, control, children }: RowProps) {
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
      {children}
    </div>
  );
}

/** Where a slider is filled: from "as recorded", in the middle, to its thumb; shares of its length. */
function fill(time: number): Record<string, number> {
  const at = Math.max(0, 1 - (100 * time) / SLOWEST);
  return { "--hta-from": Math.min(at, 0.5), "--hta-to": Math.max(at, 0.5) };
}

function Further({
  hand,
  expression,
  children,
}: {
  hand: Hand;
  expression: string;
  children: RowProps["children"];
}) {
  return (
    <div class="hta-wi-row">
      <code class="hta-cut" title={expression}>
        {expression}
      </code>
      <Button
        class="hta-quiet"
        disabled={!hand.answers.value}
        onClick={() => {
          hand.further.value = hand.further.value.filter((other) => other !== expression);
        }}
      >
        Drop
      </Button>
      {children}
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

interface Scale {
  low: number;
  high: number;
}

/** The axis of what is saved: from the most that is lost, or 0, to the most that is saved, or 0. */
function scaleOf(before: number, chain: readonly Link[]): Scale {
  const saved = chain.map((link) => before - link.together);
  return { low: Math.min(0, ...saved), high: Math.max(0, ...saved) };
}

interface FallProps {
  scale: Scale;
  before: number;
  from: number;
  to: number;
  alone: number;
}

function Fall({ scale: { low, high }, before, from, to, alone }: FallProps) {
  const place = (time: number) => (100 * (before - time - low)) / Math.max(high - low, 1);
  const [start, end] = [place(from), place(to)].sort((a, b) => a - b) as [number, number];
  return (
    <>
      <span
        class="hta-wi-fall"
        role="img"
        aria-label={`adds ${change(from, to)}`}
        title={`${duration(from)} → ${duration(to)}`}
      >
        <span data-worse={to > from || undefined} style={{ left: `${start}%`, width: `${end - start}%` }} />
      </span>
      <span class="hta-wi-alone">{change(before, alone)}</span>
    </>
  );
}
