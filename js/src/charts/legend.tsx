// Which colour means what.

export interface Series {
  column: string;
  label: string;
  time_class: string;
}

export function colour(series: Series): string {
  return `var(--hta-${series.time_class})`;
}

export function Legend({ series }: { series: readonly Series[] }) {
  return (
    <ul class="hta-legend">
      {series.map((part) => (
        <li key={part.column}>
          <span class="hta-swatch" style={{ background: colour(part) }} />
          {part.label}
        </li>
      ))}
    </ul>
  );
}
