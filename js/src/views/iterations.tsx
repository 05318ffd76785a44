// IterationSelector: the time of every step as an upright bar.

import { computed } from "@preact/signals";
import { decode, type EncodedTable } from "../columns";
import { duration } from "../format";
import { trait, type View } from "../model";
import { Picker, PickerStatus } from "../picker";
import { draw } from "../shared";
import { BusyMark, StateNotice, type Status } from "../state";

interface Step {
  slowest: number;
  fastest: number;
  slowestRank: number;
  ranks: number;
  partial: boolean;
}

const LABELS = 16; // more bars than this go without a number below
const USUAL = 4; // steps that take so many times the median are off the scale, which the others share

export const iterations: View = ({ model, el, signal }) => {
  const selected = trait<number[]>(model, "iterations", signal);
  const table = trait<EncodedTable | null>(model, "table", signal);
  const source = trait<string>(model, "source", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const steps = computed(() => stepsOf(table.value));

  const describe = (iteration: number) => {
    const step = steps.value.get(iteration);
    if (!step) return `Iteration ${iteration}`;
    const several =
      step.ranks > 1
        ? ` on rank ${step.slowestRank}, the slowest of ${step.ranks}; ${duration(step.fastest)} on the fastest`
        : "";
    return `Iteration ${iteration}: ${duration(step.slowest)}${several}${step.partial ? "; incomplete" : ""}`;
  };

  function Iterations() {
    const all = [...steps.value.keys()];
    const times = [...steps.value.values()].map((step) => step.slowest).sort((a, b) => a - b);
    const longest = times.at(-1) ?? 0;
    const limit = USUAL * (times[times.length >> 1] ?? 0);
    const top = times.filter((time) => time <= limit).at(-1) ?? 0;
    const timeOf = (iteration: number) => steps.value.get(iteration)?.slowest ?? 0;
    const off = all.filter((iteration) => timeOf(iteration) > top);
    const longer = `longer: ${off.map((one) => `#${one} (${duration(timeOf(one))})`).join(", ")}`;
    const partial = [...steps.value.values()].some((step) => step.partial);
    return (
      <section class="hta-iterations">
        <div class="hta-bar">
          <h3>Iterations</h3>
          <PickerStatus of="iterations" count={all.length} selected={selected} />
          <BusyMark status={status} />
          {off.length > 0 && (
            <span class="hta-muted hta-cut" style="flex-shrink: 1e4" title={longer}>
              {longer}
            </span>
          )}
          <span class="hta-grow" />
          {longest > 0 && (
            <span class="hta-muted">
              up to {duration(longest)}
              {source.value && `, from ${source.value}`}
              {partial && ", hatched: incomplete"}
            </span>
          )}
        </div>
        <StateNotice status={status} message={message} />
        {all.length > 0 && (
          <Picker label="Iterations" className="hta-step-strip" {...{ all, selected, describe }}>
            {(iteration) => {
              const share = top && timeOf(iteration) / top;
              return (
                <>
                  <span class="hta-step-track">
                    <span
                      class="hta-step"
                      data-partial={steps.value.get(iteration)?.partial}
                      data-off={share > 1 || undefined}
                      style={{ height: `${100 * Math.min(1, share)}%` }}
                    />
                  </span>
                  {all.length <= LABELS && <span class="hta-step-label">{iteration}</span>}
                </>
              );
            }}
          </Picker>
        )}
      </section>
    );
  }
  draw(<Iterations />, el, signal);
};

function stepsOf(encoded: EncodedTable | null): Map<number, Step> {
  const table = decode(encoded);
  const column = (name: string) => table.numbers(name);
  const [slowest, fastest, rank] = [column("slowest_ns"), column("fastest_ns"), column("slowest_rank")];
  const [ranks, partial] = [column("ranks"), column("partial")];
  return new Map(
    Array.from(column("iteration"), (iteration, row): [number, Step] => [
      iteration,
      {
        slowest: slowest[row] ?? 0,
        fastest: fastest[row] ?? 0,
        slowestRank: rank[row] ?? 0,
        ranks: ranks[row] ?? 1,
        partial: partial[row] === 1,
      },
    ]),
  );
}
