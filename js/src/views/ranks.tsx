// RankSelector: every rank as a cell with a bar of where its time goes.

import { computed, effect, signal as makeSignal } from "@preact/signals";
import { Legend, type Series } from "../charts/legend";
import { decode, type EncodedTable } from "../columns";
import { duration, percent } from "../format";
import { trait, type View } from "../model";
import { onAbort } from "../page";
import { Picker, PickerStatus } from "../picker";
import { Popover, Radios } from "../popover";
import { found, type Grouping, grouped, type Option, sorted } from "../rank_order";
import { Rpc } from "../rpc";
import { SearchBox } from "../search";
import { draw } from "../shared";
import { BusyMark, StateNotice, type Status } from "../state";

// More ranks than this can be searched, sorted and grouped; those that stand out come first, or they would be out of
// sight.
const SOME = 12;

const NUMBER = "number";
const OUTLIERS = "outliers";
const WAITS = { waiting: "Waiting for other ranks", caused: "Waits caused" };

interface Waits {
  waits: Record<keyof typeof WAITS, number[]> | null;
  missing: string;
}

export const ranks: View = ({ model, el, signal }) => {
  const rpc = new Rpc(model, signal);
  const options = trait<Option[]>(model, "options", signal);
  const selected = trait<number[]>(model, "ranks", signal);
  const series = trait<Series[]>(model, "series", signal);
  const whole = trait<string>(model, "whole", signal);
  const table = trait<EncodedTable | null>(model, "table", signal);
  const outliers = trait<{ rank: number; why: string }[] | undefined>(model, "outliers", signal);
  const status = trait<Status>(model, "status", signal);
  const message = trait<string>(model, "message", signal);
  const labels = computed(() => new Map(options.value.map((option) => [option.rank, option.label])));
  const stands = computed(() => new Map(options.value.map(({ rank, place }) => [rank, place])));
  const shares = computed(() => sharesOf(table.value, series.value, whole.value));
  const why = computed(() => new Map(outliers.value?.map((one) => [one.rank, one.why])));

  const words = makeSignal("");
  const asked = makeSignal<string | null>(null); // the order, once one is chosen
  const by = makeSignal("");
  const groupings = makeSignal<Grouping[] | null>(null);
  const waits = makeSignal<Waits | null>(null);
  const order = computed(() => asked.value ?? (options.value.length > SOME ? OUTLIERS : NUMBER));
  const waitsAsked = computed(() => order.value in WAITS);

  // Which ranks belong together is asked once it is of use, and who waits again for each selection.
  let looking = false;
  const lookForGroups = () => {
    if (looking) return;
    looking = true;
    rpc.call<{ groups: Grouping[] }>("groups").then(
      ({ result }) => {
        groupings.value = result.groups;
      },
      () => {
        groupings.value = [];
      },
    );
  };
  onAbort(
    signal,
    effect(() => {
      if (words.value) lookForGroups();
    }),
  );
  onAbort(
    signal,
    effect(() => {
      if (!waitsAsked.value || !table.value) return;
      waits.value = null;
      const of = table.value;
      const settle = (answer: Waits) => {
        if (table.peek() === of) waits.value = answer;
      };
      rpc.call<Waits>("waits").then(
        ({ result }) => settle(result),
        (error: Error) => settle({ waits: null, missing: error.message }),
      );
    }),
  );

  /** What ranks are sorted by, if it is a number. */
  const sizes = computed((): { label: string; of: Map<number, number> } | null => {
    const all = options.value.map(({ rank }) => rank);
    const name = order.value;
    if (name === NUMBER || name === OUTLIERS) return null;
    if (waitsAsked.value) {
      const values = waits.value?.waits?.[name as keyof typeof WAITS] ?? [];
      return {
        label: WAITS[name as keyof typeof WAITS],
        of: new Map(all.map((rank, i) => [rank, values[i] ?? Number.NaN])),
      };
    }
    const answer = decode(table.value);
    const values = answer.numbers(name);
    const of = Array.from(answer.numbers("rank"), (rank, i): [number, number] => [
      rank,
      values[i] ?? Number.NaN,
    ]);
    return {
      label: series.value.find(({ column }) => column === name)?.label ?? "Duration",
      of: new Map(of),
    };
  });

  const places = computed(() => new Map(options.value.map(({ rank }, at) => [rank, at])));
  const about = (rank: number) =>
    (groupings.value ?? [])
      .map((one) => one.groups[one.of[places.value.get(rank) ?? -1] ?? -1] ?? "")
      .join("\n");
  const shown = computed(() => {
    const some = found(options.value, words.value, about).map(({ rank }) => rank);
    const first = order.value === OUTLIERS ? (outliers.value ?? []).map(({ rank }) => rank) : [];
    const size = sizes.value;
    const inOrder = sorted(some, first, size && ((rank) => size.of.get(rank) ?? Number.NaN));
    return grouped(
      options.value,
      inOrder,
      groupings.value?.find(({ name }) => name === by.value),
    );
  });

  const written = (rank: number) => {
    const parts = shares.value.get(rank);
    const split = parts?.map((share, i) => `${series.value[i]?.label} ${percent(100 * share)}`).join(", ");
    const none = status.value === "busy" ? "" : ": no device time";
    const size = sizes.value?.of.get(rank);
    const told = size === undefined || Number.isNaN(size) ? "" : `; ${sizes.value?.label} ${duration(size)}`;
    const unlike = why.value.has(rank) ? `; stands out: ${why.value.get(rank)}` : "";
    const place = stands.value.get(rank);
    return `Rank ${labels.value.get(rank) ?? rank}${place ? ` (${place})` : ""}${split ? `: ${split}` : none}${told}${unlike}`;
  };

  // of a thousand ranks a click must not write all texts again
  const looks = computed(
    () =>
      new Map(
        options.value.map(({ rank }) => [
          rank,
          { text: written(rank), bar: gradient(shares.value.get(rank), series.value) },
        ]),
      ),
  );
  const describe = (rank: number) => looks.value.get(rank)?.text ?? "";

  function Order() {
    const choices: [name: string, label: string][] = [
      [NUMBER, "Number"],
      [OUTLIERS, `Outliers first (${why.value.size})`],
      ...(table.value ? [...series.value.map((part): [string, string] => [part.column, part.label])] : []),
      [whole.value, "Duration"],
      ...Object.entries(WAITS),
    ];
    const ways = groupings.value;
    return (
      <Popover
        label="Order"
        title="How ranks are sorted and grouped"
        pressed={order.value !== NUMBER || by.value !== ""}
        opened={lookForGroups}
      >
        <Radios
          label="Sort by"
          choices={choices}
          chosen={order.value}
          choose={(name) => {
            asked.value = name;
          }}
        />
        {waitsAsked.value && waits.value?.missing && <p class="hta-muted">{waits.value.missing}</p>}
        <Radios
          label="Group by"
          choices={[["", "Nothing"], ...(ways ?? []).map(({ name }): [string, string] => [name, name])]}
          chosen={by.value}
          choose={(name) => {
            by.value = name;
          }}
        />
        {!ways?.length && (
          <p class="hta-muted">{ways ? "The recording names no groups." : "Looking for groups"}</p>
        )}
      </Popover>
    );
  }

  function Ranks() {
    const count = options.value.length;
    const groups = shown.value;
    const all = groups.flatMap((group) => group.ranks);
    const bars = shares.value;
    const heads = new Map(
      groups.flatMap(({ name, ranks: own }) =>
        name
          ? [
              [
                own[0] as number,
                <button
                  key={name}
                  type="button"
                  class="hta-rank-head"
                  tabIndex={-1}
                  title="Select these ranks"
                  onClick={() => {
                    selected.value = [...own].sort((a, b) => a - b);
                  }}
                >
                  {name} <span class="hta-muted">{own.length}</span>
                </button>,
              ] as const,
            ]
          : [],
      ),
    );
    return (
      <section class="hta-ranks" data-many={count > SOME}>
        <div class="hta-bar">
          <h3 title={message.value}>Ranks</h3>
          <PickerStatus of="ranks" count={count} selected={selected} />
          {count > SOME && (
            <>
              <SearchBox
                query={words}
                label="Find ranks"
                title="For example 7, 64-71 or node 3; commas in between"
                signal={signal}
              />
              {words.value && (
                <button
                  type="button"
                  disabled={all.length === 0}
                  title="Select the ranks that were found"
                  onClick={() => {
                    selected.value = all.length === count ? [] : [...all].sort((a, b) => a - b);
                  }}
                >
                  Select {all.length.toLocaleString("en-US")}
                </button>
              )}
              <Order />
            </>
          )}
          <BusyMark status={status} />
          <span class="hta-grow" />
          {bars.size > 0 && <Legend series={series.value} />}
        </div>
        {/* without device events ranks are still to be chosen from: the story says what is missing */}
        {status.value !== "empty" && <StateNotice status={status} message={message} />}
        {all.length === 0 && count > 0 && <p class="hta-muted">No rank is called that.</p>}
        <Picker
          label="Ranks"
          className="hta-rank-grid"
          look={(rank) => ({ "data-outlier": why.value.has(rank) || undefined })}
          {...{ all, selected, describe, heads }}
        >
          {(rank) => (
            <>
              <span class="hta-rank-label">{labels.value.get(rank)}</span>
              {bars.size > 0 && <span class="hta-split" style={{ background: looks.value.get(rank)?.bar }} />}
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
