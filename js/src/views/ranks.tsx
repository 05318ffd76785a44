// RankSelector: every rank as a cell with a bar of where its time goes.

import { computed } from "@preact/signals";
import { Legend, type Series } from "../charts/legend";
import { decode, type EncodedTable } from "../columns";
import { percent } from "../format";
import { trait, type View } from "../model";
import { Picker, PickerStatus } from "../picker";
import { draw } from "../shared";
import { BusyMark, StateNotice, type Status } from "../state";

interface Option {
  rank: number;
  label: string;
}

export const ranks: View = ({ model, el, signal }) => {
  const options = trait<Option[]>(model, "options", signal);
  const selected = trait<number[]>(model, "ranks", signal);
  const series = trait<Series[]>(model, "series", signal);
  const whole = trait<string>(model, "whole", signal);
  const table = trait<EncodedTable | null>(model, "table", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const labels = computed(() => new Map(options.value.map((option) => [option.rank, option.label])));
  const shares = computed(() => sharesOf(table.value, series.value, whole.value));

  const describe = (rank: number) => {
    const parts = shares.value.get(rank);
    const split = parts?.map((share, i) => `${series.value[i]?.label} ${percent(100 * share)}`).join(", ");
    const none = status.value === "busy" ? "" : ": no device time";
    return `Rank ${labels.value.get(rank) ?? rank}${split ? `: ${split}` : none}`;
  };

  function Ranks() {
    const all = options.value.map((option) => option.rank);
    const bars = shares.value;
    return (
      <section class="hta-ranks">
        <div class="hta-bar">
          <h3>Ranks</h3>
          <PickerStatus count={all.length} selected={selected} />
          <BusyMark status={status} />
          <span class="hta-grow" />
          {bars.size > 0 && <Legend series={series.value} />}
        </div>
        <StateNotice status={status} message={message} />
        <Picker label="Ranks" className="hta-rank-grid" {...{ all, selected, describe }}>
          {(rank) => (
            <>
              <span class="hta-rank-label">{labels.value.get(rank)}</span>
              <span class="hta-split" style={{ background: gradient(bars.get(rank), series.value) }} />
            </>
          )}
        </Picker>
      </section>
    );
  }
  draw(<Ranks />, el, signal);
};

/** Each rank's parts as shares of its whole. */
function sharesOf(
  encoded: EncodedTable | null,
  series: readonly Series[],
  whole: string,
): Map<number, number[]> {
  const table = decode(encoded);
  const columns = series.map((part) => table.numbers(part.column));
  const wholes = table.numbers(whole);
  const shares = new Map<number, number[]>();
  table.numbers("rank").forEach((rank, row) => {
    const sum = wholes[row] ?? 0;
    if (sum > 0)
      shares.set(
        rank,
        columns.map((values) => (values[row] ?? 0) / sum),
      );
  });
  return shares;
}

/** A stacked bar as one background: a thousand ranks then cost a thousand elements and not four thousand. */
function gradient(shares: readonly number[] | undefined, series: readonly Series[]): string | undefined {
  if (!shares) return undefined;
  let end = 0;
  const stops = shares.map((share, i) => {
    const start = end;
    end += 100 * share;
    return `var(--hta-${series[i]?.time_class}) ${start.toFixed(2)}% ${end.toFixed(2)}%`;
  });
  return `linear-gradient(to right, ${stops.join(", ")})`;
}
