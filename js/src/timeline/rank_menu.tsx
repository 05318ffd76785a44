// A button that tells which of many ranks have lanes, and why; and that adds others.

import type { ReadonlySignal, Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { Button } from "../button";
import { Popover } from "../popover";
import { found } from "../rank_order";
import { labelOf } from "./lane_groups";
import type { Outline } from "./types";

export interface First {
  rank: number;
  why: string;
}

export interface RankMenuProps {
  outline: Outline;
  /** the ranks to begin with */
  first: readonly First[];
  added: Signal<number[] | undefined>;
  all: Signal<boolean | undefined>;
  /** the ranks that have lanes; none for all */
  shown: ReadonlySignal<readonly number[]>;
  selected: Signal<number[]>;
}

export function RankMenu({ outline, first, added, all, shown, selected }: RankMenuProps) {
  const text = useSignal("");
  const total = outline.ranks.length;
  const count = shown.value.length || total;
  const why = new Map(first.map((one) => [one.rank, one.why]));
  const chosen = selected.value.length > 0;
  const add = () => {
    const more = found(outline.ranks, text.value, () => "").map(({ rank }) => rank);
    if (!text.value.trim() || more.length === 0) return;
    added.value = [...new Set([...(added.value ?? []), ...more])].sort((a, b) => a - b);
    text.value = "";
  };
  return (
    <Popover
      label={`${count.toLocaleString("en-US")} of ${total.toLocaleString("en-US")} ranks`}
      title="Which ranks have lanes, and why"
      pressed={count < total}
    >
      {chosen ? (
        <p class="hta-muted">The selected ranks have lanes.</p>
      ) : (
        <>
          {!all.value && (
            <ul class="hta-timeline-ranks">
              {shown.value.map((rank) => (
                <li key={rank}>
                  Rank {labelOf(outline, { rank })} <span class="hta-muted">{why.get(rank) ?? "added"}</span>
                  {!why.has(rank) && (
                    <Button
                      aria-label={`Remove rank ${labelOf(outline, { rank })}`}
                      onClick={() => {
                        added.value = (added.value ?? []).filter((one) => one !== rank);
                      }}
                    >
                      ×
                    </Button>
                  )}
                </li>
              ))}
            </ul>
          )}
          {!all.value && (
            <span class="hta-tools">
              <input
                type="text"
                class="hta-search"
                aria-label="Add ranks"
                placeholder="Add ranks: 7, 64-71"
                value={text.value}
                onInput={(event) => {
                  text.value = event.currentTarget.value;
                }}
                onKeyDown={(event) => {
                  if (event.key !== "Enter") return;
                  event.stopPropagation();
                  add();
                }}
              />
              <Button onClick={add}>Add</Button>
            </span>
          )}
          <label>
            <input
              type="checkbox"
              checked={all.value === true}
              onChange={(event) => {
                all.value = event.currentTarget.checked;
              }}
            />
            All ranks
          </label>
        </>
      )}
    </Popover>
  );
}
