// How far a trace can be trusted: a badge that opens the list of what was found.

import type { Signal } from "@preact/signals";
import { useState } from "preact/hooks";
import { Button } from "./button";
import { copyText } from "./export";
import { counted as counting, grouped } from "./format";
import { ranges } from "./shared";

export interface HealthRow {
  severity: "error" | "warning" | "info";
  check: string;
  count: number;
  detail: string;
  remedy: string;
  /** full name of the device work that the row is about */
  name?: string;
  ranks: number[];
}

interface HealthProps {
  rows: readonly HealthRow[];
  /** names of device work that counts as communication; null where nobody can change it */
  counted: Signal<string[]> | null;
  /** what a file of rules says to keep that */
  rules: string;
}

export function Health({ rows, counted, rules }: HealthProps) {
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
    .flatMap(([number, noun]) => (number ? [counting(number, noun)] : []))
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
                {row.name && counted && <CountChoice name={row.name} counted={counted} />}
              </span>
            </li>
          ))}
        </ul>
      )}
      {rules && <Rules text={rules} />}
    </details>
  );
}

/** Makes work of this name communication in every part, and takes it back. */
function CountChoice({ name, counted }: { name: string; counted: Signal<string[]> }) {
  const others = counted.value.filter((other) => other !== name);
  const undo = others.length < counted.value.length;
  return (
    <>
      {" "}
      <Button
        title={name}
        onClick={() => {
          counted.value = undo ? others : [...others, name];
        }}
      >
        {undo ? "Undo" : "Count as communication"}
      </Button>
    </>
  );
}

function Rules({ text }: { text: string }) {
  const [copied, setCopied] = useState("");
  return (
    <>
      <p class="hta-muted">
        To keep this, add to hta_widgets.toml beside the traces, or call save_rules(folder):{" "}
        <Button onClick={() => copyText(text).then(() => setCopied(text))}>
          {copied === text ? "Copied" : "Copy"}
        </Button>
      </p>
      <pre>{text}</pre>
    </>
  );
}
