// What each change saves: a waterfall in the order in which the next one adds most, and each alone.

import { duration } from "../format";
import type { Link } from "../replay/answer";
import type { Control } from "../replay/controls";
import { change } from "./figures";
import type { Hand } from "./hand";

export function Savings({ hand, controls }: { hand: Hand; controls: readonly Control[] }) {
  const before = hand.whole.value?.before ?? 0;
  const chain = hand.chain.value;
  const last = chain.at(-1);
  if (!last) return <p class="hta-muted">No change yet: what each one saves will stand here.</p>;
  const saved = [0, ...chain.flatMap((link) => [before - link.together, before - link.alone])];
  const scale = { before, low: Math.min(...saved), high: Math.max(...saved) };
  return (
    <table class="hta-wi-savings" aria-label="What each change saves">
      <thead>
        <tr>
          <th>Saves most first</th>
          <th>Line: alone</th>
          <th>Adds</th>
          <th>Alone</th>
        </tr>
      </thead>
      <tbody>
        {chain.map((link, at) => (
          <Saving
            key={link.name || link.expression}
            label={controls.find(({ name }) => name === link.name)?.label ?? link.expression}
            colour={`var(--hta-${link.time_class})`}
            from={chain[at - 1]?.together ?? before}
            to={link.together}
            alone={link.alone}
            scale={scale}
          />
        ))}
        {chain.length > 1 && (
          <Saving label="Together" colour="var(--hta-text)" from={before} to={last.together} scale={scale} />
        )}
      </tbody>
    </table>
  );
}

interface SavingProps {
  label: string;
  colour: string;
  /** what the recording takes without it and with it; ns */
  from: number;
  to: number;
  /** with it alone; none for all together */
  alone?: Link["alone"];
  /** the recorded time, and the axis of what is saved of it */
  scale: { before: number; low: number; high: number };
}

function Saving({ label, colour, from, to, alone, scale: { before, low, high } }: SavingProps) {
  const place = (time: number) => (100 * (before - time - low)) / Math.max(high - low, 1);
  const [start, end] = [place(from), place(to)].sort((a, b) => a - b) as [number, number];
  const whole = alone === undefined;
  return (
    <tr data-whole={whole || undefined}>
      <th class="hta-cut" title={label}>
        {label}
      </th>
      <td title={`${duration(from)} → ${duration(to)}`}>
        <div class="hta-wi-fall">
          <span
            data-worse={to > from || undefined}
            style={{ left: `${start}%`, width: `${end - start}%`, "--hta-saving": colour }}
          />
          {!whole && <i style={{ left: `${place(alone)}%` }} title={`Alone: ${duration(alone)}`} />}
        </div>
      </td>
      <td>{share(before, from, to)}</td>
      <td>{whole ? "" : change(before, alone)}</td>
    </tr>
  );
}

/** What is saved between two times, of the recorded time. */
function share(before: number, from: number, to: number): string {
  return change(before, before - from + to);
}
