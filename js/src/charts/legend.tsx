// Which colour means what.

import { Fill } from "./fills";

export interface Series {
  column: string;
  label: string;
  time_class: string;
  /** tells apart the parts of one class: "" (filled), "/", "." or "x" */
  pattern?: string;
  /** the class whose colour the pattern takes; default: the background's */
  over?: string;
}

export function colour(series: { time_class: string }): string {
  return `var(--hta-${series.time_class})`;
}

export function Legend({ series }: { series: readonly Series[] }) {
  return (
    <ul class="hta-legend">
      {series.map((part) => (
        <li key={part.column} title={part.label}>
          <svg class="hta-swatch" width={10} height={10} aria-hidden="true">
            <Fill series={part} x={0} y={0} width={10} height={10} />
          </svg>
          <span>{part.label}</span>
        </li>
      ))}
    </ul>
  );
}
