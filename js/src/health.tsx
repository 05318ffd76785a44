// How far a trace can be trusted: a badge that opens the list of what was found.

import { counted, grouped } from "./format";
import { ranges } from "./shared";

export interface HealthRow {
  severity: "error" | "warning" | "info";
  check: string;
  count: number;
  detail: string;
  remedy: string;
  ranks: number[];
}

export function Health({ rows }: { rows: readonly HealthRow[] }) {
  const count = (severity: string) => rows.filter((row) => row.severity === severity).length;
  const [errors, warnings, notes] = [count("error"), count("warning"), count("info")];
  const worst = errors ? "error" : warnings ? "warning" : "good";
  const text = (
    [
      [errors, "error"],
      [warnings, "warning"],
      [notes, "note"],
    ] as const
  )
    .flatMap(([number, noun]) => (number ? [counted(number, noun)] : []))
    .join(", ");
  return (
    <details class="hta-health" data-worst={worst}>
      <summary>
        <span class="hta-dot" aria-hidden="true" />
        {text || "healthy"}
      </summary>
      {rows.length > 0 && (
        <ul>
          {rows.map((row) => (
            <li key={`${row.check} ${row.detail} ${row.ranks}`} data-severity={row.severity}>
              <span class="hta-severity">{row.severity}</span>
              <span>
                <strong>{row.check.replaceAll("_", " ")}</strong>
                {row.count > 1 && ` × ${grouped(row.count)}`}
                {row.ranks.length > 0 && <span class="hta-muted"> rank {ranges(row.ranks)}</span>}
                <br />
                {row.detail}
                {row.remedy && <span class="hta-muted"> → {row.remedy}</span>}
              </span>
            </li>
          ))}
        </ul>
      )}
    </details>
  );
}
