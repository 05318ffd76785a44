// The answer: how long the recording and a step take before and after, and where the time goes.

import { Legend } from "../charts/legend";
import { duration, percent } from "../format";
import type { Times, Whole } from "../replay/answer";
import type { Hand } from "./hand";

const PARTS = [
  { column: "compute", label: "Compute", time_class: "compute" },
  { column: "communication", label: "Exposed communication", time_class: "communication" },
  { column: "memory", label: "Exposed memory", time_class: "memory" },
  { column: "idle", label: "Idle", time_class: "idle" },
];

/** "19.3 % less" */
export function change(before: number, after: number): string {
  if (before === after) return "no change";
  const share = (100 * Math.abs(after - before)) / Math.max(before, 1);
  return `${percent(share)} ${after < before ? "less" : "more"}`;
}

interface FiguresProps {
  hand: Hand;
  whole: Whole;
  /** there is an edit */
  changed: boolean;
  job?: string | undefined;
}

export function Figures({ hand, whole, changed, job = "Recording" }: FiguresProps) {
  // nothing times the steps of a report anew
  const step = hand.frozen && !hand.confirmed.value ? null : hand.known.value?.step;
  return (
    <div class="hta-wi-figures">
      <Figure label={job} times={whole} changed={changed} stale={hand.stale.value} />
      {step && (
        <Figure
          label={step.count > 1 ? `Step, median of ${step.count}` : "Step"}
          hint={step.clock === "device period" ? "From a step's first device work to the next one's" : ""}
          times={step}
          changed={changed}
          stale={!hand.confirmed.value}
        />
      )}
    </div>
  );
}

interface FigureProps {
  label: string;
  hint?: string;
  times: Times;
  changed: boolean;
  /** the answer to what the sliders said before */
  stale: boolean;
}

function Figure({ label, hint = "", times, changed, stale }: FigureProps) {
  const { before, low, after, high } = times;
  return (
    <div title={hint} data-stale={stale || undefined}>
      <div class="hta-fact-label">{label}</div>
      <div class="hta-wi-number">
        {changed && (
          <>
            <span class="hta-muted">{duration(before)}</span>
            <span class="hta-muted" aria-hidden="true">
              →
            </span>
            <span class="hta-hidden">becomes</span>
          </>
        )}
        <strong>{duration(after)}</strong>
      </div>
      <div>
        {changed ? change(before, after) : "as recorded"}
        {low !== high && <span class="hta-muted">{` (${duration(low)} to ${duration(high)})`}</span>}
      </div>
    </div>
  );
}

/** Two bars on one scale, and the parts in numbers. */
export function Parts({ whole, stale }: { whole: Whole; stale: boolean }) {
  const bars = [
    { label: "Recorded", total: whole.before, parts: whole.parts_before },
    { label: "After", total: whole.after, parts: whole.parts_after },
  ];
  const longest = Math.max(whole.before, whole.after, 1);
  return (
    <div class="hta-wi-parts" data-stale={stale || undefined}>
      {bars.map(({ label, total, parts }) => (
        <div key={label} class="hta-wi-bar">
          <span class="hta-muted">{label}</span>
          <div class="hta-wi-track" role="img" aria-label={`${label}: ${said(parts)}`}>
            {parts.map((part, i) => (
              <div
                key={PARTS[i]?.column}
                style={{
                  width: `${(100 * part) / longest}%`,
                  background: `var(--hta-${PARTS[i]?.time_class})`,
                }}
                title={`${PARTS[i]?.label}: ${duration(part)}, ${percent((100 * part) / Math.max(total, 1))}`}
              />
            ))}
          </div>
        </div>
      ))}
      <Legend
        series={PARTS.map((part, i) => ({
          ...part,
          label: `${part.label} ${duration(whole.parts_before[i] as number)} → ${duration(whole.parts_after[i] as number)}`,
        }))}
      />
    </div>
  );
}

function said(parts: readonly number[]): string {
  return parts.map((part, i) => `${PARTS[i]?.label} ${duration(part)}`).join(", ");
}
