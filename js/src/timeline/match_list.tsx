// The slices that match, as a list: by start or by length; going to one zooms to it.

import { type Signal, signal } from "@preact/signals";
import { useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { Button } from "../button";
import { duration, exact, grouped } from "../format";
import { consume } from "../page";
import { combined } from "../shared";
import { visible } from "../visible";
import { shortName } from "./labels";
import { trackOf } from "./tooltip";
import type { Outline, Slice } from "./types";

export type MatchOrder = "start" | "dur";

export interface MatchListProps {
  outline: Outline;
  /** how many match */
  count: number;
  /** matches in an order, from a place on */
  page(order: MatchOrder, offset: number, limit: number): Promise<Slice[]>;
  /** look at one */
  go(slice: Slice): void;
}

const PAGE = 100;
const ORDERS: readonly [MatchOrder, string][] = [
  ["start", "start"],
  ["dur", "longest"],
];

export function MatchList({ outline, count, page, go }: MatchListProps) {
  const open = useMemo(() => signal(false), []);
  const order: Signal<MatchOrder> = useMemo(() => signal("start"), []);
  const shown: Signal<readonly Slice[]> = useMemo(() => signal([]), []);
  const root = useRef<HTMLSpanElement>(null);
  const more = async (from: readonly Slice[]) => {
    const wanted = order.value;
    const next = await page(wanted, from.length, PAGE);
    if (wanted === order.value) shown.value = [...from, ...next];
  };
  // other slices match, or in another order
  useLayoutEffect(() => {
    shown.value = [];
    if (open.value) void more([]);
  }, [open.value, order.value, page]);
  const close = () => {
    open.value = false;
    root.current?.querySelector<HTMLElement>("button")?.focus();
  };
  const key = (event: KeyboardEvent) => {
    if (!open.value || combined(event)) return;
    const rows = [...(root.current?.querySelectorAll<HTMLElement>("li button") ?? [])];
    const at = rows.findIndex((row) => row.matches(":focus"));
    const by = event.key === "ArrowDown" ? 1 : event.key === "ArrowUp" ? -1 : 0;
    if (event.key === "Escape") close();
    else if (by) {
      const next = rows[Math.min(Math.max(at + by, 0), rows.length - 1)];
      next?.focus();
      next?.click();
    } else return;
    consume(event);
  };
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: keys of the list inside
    <span ref={root} class="hta-menu" onKeyDown={key}>
      <Button
        title="List the slices that match"
        aria-expanded={open.value}
        onClick={() => {
          open.value = !open.value;
        }}
      >
        List
      </Button>
      {open.value && (
        <section class="hta-match-list" aria-label="Slices that match">
          <p class="hta-tools">
            {ORDERS.map(([value, label]) => (
              <Button
                key={value}
                aria-pressed={order.value === value}
                onClick={() => {
                  order.value = value;
                }}
              >
                by {label}
              </Button>
            ))}
            <span class="hta-grow" />
            <Button class="hta-quiet" aria-label="Close the list" title="Close" onClick={close}>
              ×
            </Button>
          </p>
          <ol>
            {shown.value.map((slice) => (
              <li key={slice.id}>
                <Button title={visible(outline.names[slice.kind] ?? "")} onClick={() => go(slice)}>
                  <span data-numeric="true" title={exact(slice.start, "ns")}>
                    {duration(slice.start)}
                  </span>
                  <span data-numeric="true" title={exact(slice.dur, "ns")}>
                    {duration(slice.dur)}
                  </span>
                  <span class="hta-muted hta-cut">{placeOf(outline, slice)}</span>
                  <span class="hta-cut">{visible(shortName(outline.names[slice.kind] ?? ""))}</span>
                </Button>
              </li>
            ))}
          </ol>
          {shown.value.length < count && (
            <Button onClick={() => void more(shown.value)}>
              {grouped(shown.value.length)} of {grouped(count)}: show more
            </Button>
          )}
        </section>
      )}
    </span>
  );
}

function placeOf(outline: Outline, { lane }: Slice): string {
  const track = trackOf(outline, lane);
  const rank = outline.ranks.find((one) => one.rank === track?.rank)?.label ?? "";
  return visible(`rank ${rank} · ${track?.label ?? ""}`);
}
