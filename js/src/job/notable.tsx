// The ranks to look at first, with their numbers: culprits, who waits, what is usual.

import { Button } from "../button";
import { duration } from "../format";
import type { Evidence } from "../showing";
import { MEASURES, type Rank, roleOf } from "./ranks";

/** hta_widgets/widgets/notable_ranks.py describes it. */
export interface Notable {
  rank: number;
  why: "culprit" | "costs" | "causes" | "waits" | "usual";
  cause: string;
  evidence: Evidence | null;
}

const WHY = {
  culprit: "culprit",
  costs: "costs most",
  causes: "causes waiting",
  waits: "waits most",
  usual: "most usual",
};

export interface NotableProps {
  notable: readonly Notable[];
  ranks: readonly Rank[];
  /** about the culprits, beside what each of them costs */
  note: string;
  /** the rank that the timeline shows */
  shown: number | null;
  show(notable: Notable): void;
}

export function NotableRanks({ notable, ranks, note, shown, show }: NotableProps) {
  const of = new Map(ranks.map((rank) => [rank.rank, rank]));
  const rows = notable.flatMap((one) => {
    const rank = of.get(one.rank);
    return rank ? [{ one, rank }] : [];
  });
  return (
    <div class="hta-job-notable">
      <table>
        <caption class="hta-hidden">Ranks to look at first, per step</caption>
        <thead>
          <tr>
            <th scope="col">Rank</th>
            {MEASURES.map(({ name, label, title }) => (
              <th key={name} scope="col" class="hta-job-number" title={title}>
                {label}
              </th>
            ))}
            <th scope="col">
              <span class="hta-hidden">Timeline</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ one, rank }) => (
            <tr key={rank.rank} data-why={one.why}>
              <th scope="row">
                <strong>{rank.label}</strong> <span class="hta-job-why">{WHY[one.why]}</span>
                {[one.cause, roleOf(rank)].filter(Boolean).map((text) => (
                  <span key={text} class="hta-muted hta-job-role">
                    {text}
                  </span>
                ))}
              </th>
              {MEASURES.map(({ name }) => (
                <td key={name} class="hta-job-number">
                  {own(rank.values[name] ?? Number.NaN)}
                </td>
              ))}
              <td>
                {one.evidence && (
                  <Button
                    aria-pressed={shown === rank.rank}
                    aria-label={`${shown === rank.rank ? "Back from" : "Show"} rank ${rank.label} in the timeline`}
                    title={
                      shown === rank.rank
                        ? "Back to what was selected and visible before"
                        : "Zoom the timeline to the longest wait, on both ranks"
                    }
                    onClick={() => show(one)}
                  >
                    {shown === rank.rank ? "Back" : "Show"}
                  </Button>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      {note && <p class="hta-job-small">{note}</p>}
      {ranks.length > rows.length && <Rest ranks={ranks} named={rows.map(({ rank }) => rank.rank)} />}
    </div>
  );
}

/** In the unit in which it reads best by itself. */
const own = (ns: number) => (ns === 0 ? "0" : duration(ns));

/** All other ranks in a line. */
function Rest({ ranks, named }: { ranks: readonly Rank[]; named: readonly number[] }) {
  const others = ranks.filter(({ rank }) => !named.includes(rank));
  const costs = others.map(({ values }) => values.cost ?? Number.NaN).filter((cost) => !Number.isNaN(cost));
  const [least, most] = [Math.min(...costs), Math.max(...costs)].map(own);
  const cost = least === most ? `cost ${least} each` : `cost from ${least} to ${most}`;
  const range = costs.length ? `: ${cost} per step` : "";
  return (
    <p class="hta-muted hta-job-small">
      {`${others.length === 1 ? "1 other rank" : `${others.length.toLocaleString("en-US")} other ranks`}${range}.`}
    </p>
  );
}
