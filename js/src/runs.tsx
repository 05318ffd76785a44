// Runs that are compared: each has a letter, the one that the others are compared with is A.

export interface Run {
  name: string;
  /** what is known of it, in a few words */
  detail: string;
}

export function letter(at: number): string {
  return String.fromCharCode(65 + (at % 26));
}

export function RunName({ run, at }: { run: Run; at: number }) {
  return (
    <span class="hta-run">
      <span class="hta-letter" data-base={at === 0 || undefined}>
        {letter(at)}
      </span>
      <strong class="hta-cut" title={run.name}>
        {run.name}
      </strong>
      {run.detail && <span class="hta-muted">{run.detail}</span>}
    </span>
  );
}
