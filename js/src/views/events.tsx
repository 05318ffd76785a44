// EventsTable: the selected events one by one. The kernel filters and sorts; this fetches the visible rows.

import { computed, effect, signal as makeSignal } from "@preact/signals";
import { createRef } from "preact";
import { useLayoutEffect } from "preact/hooks";
import type { Distribution, Filter } from "../column_filter";
import { decode, type EncodedTable } from "../columns";
import { Bar } from "../events/bar";
import { type ColumnInfo, eventColumn } from "../events/cells";
import { Grid, value } from "../events/grid";
import { moveOf } from "../events/keys";
import { Pages } from "../events/pages";
import { trait, type View } from "../model";
import { consume, onAbort } from "../page";
import { Rpc } from "../rpc";
import { savedState, saveState } from "../saved";
import { adoptStyles, combined, draw } from "../shared";
import { StateNotice, type Status } from "../state";
import timelineColours from "../timeline/timeline.css";
import { Virtual } from "../virtual";

const ROW_HEIGHT = 24;
const REST_MS = 150;

/** Of the rows, only those of the first page are saved in a notebook. */
const FIRST = "_first";

type Focus = [number, number] | null;

let tables = 0;

export const events: View = ({ model, el, signal }) => {
  adoptStyles(el, "timeline", timelineColours);
  const rpc = new Rpc(model, signal);
  const read = <T,>(name: string) => trait<T>(model, name, signal);
  const status = read<Status>("status");
  const message = read<string>("message");
  const rows = read<number>("rows");
  const version = read<number>("version");
  const sort = read<string>("sort");
  const columns = read<string[]>("columns");
  const available = read<ColumnInfo[]>("available_columns");
  const names = read<string[]>("names");
  const focus = read<Focus>("focus");
  const filters = read<Record<string, Filter> | undefined>("filters");
  const filtering = makeSignal(Object.keys(filters.value ?? {}).length > 0);
  const distributions = makeSignal<Record<string, Distribution>>({});
  const bar = {
    frozen: model.get("frozen") === true,
    filtering: model.get("frozen") === true ? null : filtering,
    filters,
    ...{ rows, status, names, columns, available, rpc, signal },
    total: read<number>("total"),
    query: read<string>("query"),
    expression: read<string>("expression"),
  };
  const maxHeight = read<number>("height");

  const id = `hta-events-${++tables}`;
  const virtual = new Virtual(ROW_HEIGHT);
  const scroller = createRef<HTMLDivElement>();
  const drawing = makeSignal(0); // counts what is no signal: scrolling, and pages that came
  const cursor = makeSignal(-1);
  const failure = makeSignal("");
  const chosenNames = computed(() => new Set(names.value));
  const shown = computed(() => {
    const known = new Map(available.value.map((info) => [info.name, info]));
    const infos = columns.value.map((name) => known.get(name)).filter((info) => info !== undefined);
    return infos.map(eventColumn);
  });
  let sought: Focus = null; // the focus that was set here, or scrolled to
  let resting: ReturnType<typeof setTimeout> | undefined;

  const saved = savedState<EncodedTable | null>(model, FIRST);
  const held = () => (saved ? saved.rows : rows.value);
  let top: EncodedTable | null = null;
  saveState(model, FIRST, () => top, signal);

  const fetchPage = async (first: number, count: number, aborted: AbortSignal) => {
    if (saved) return decode(saved);
    const params = { first, count, columns: shown.peek().map((column) => column.name) };
    const { result, buffers } = await rpc.call<EncodedTable>("page", params, { signal: aborted });
    const page = { ...result, data: buffers[0] ?? null };
    if (first === 0) top = page;
    return decode(page);
  };
  const redraw = () => {
    drawing.value += 1;
  };
  const pages = new Pages(fetchPage, redraw, (error) => {
    failure.value = `The events could not be read: ${error instanceof Error ? error.message : error}`;
  });

  const look = () => {
    const box = scroller.current;
    if (!box) return;
    const heads = filtering.value && bar.filtering ? 2 : 1;
    virtual.viewport = Math.max(0, box.clientHeight - heads * ROW_HEIGHT);
    virtual.scrolled(box.scrollTop);
    hint(box);
    pages.want(...virtual.range, virtual.rows);
    redraw();
  };
  const onScroll = () => {
    look();
    clearTimeout(resting);
    resting = setTimeout(() => {
      if (scroller.current) scroller.current.scrollTop = virtual.settle();
    }, REST_MS);
  };
  const goTo = (row: number, middle = false) => {
    cursor.value = row;
    const to = virtual.reveal(row, middle);
    if (scroller.current) scroller.current.scrollTop = to;
    pages.want(...virtual.range, virtual.rows);
    redraw();
  };
  const pick = (index: number) => {
    const row = pages.row(index);
    cursor.value = index;
    if (!row) return;
    sought = [Number(value(row, "rank")), Number(value(row, "event_id"))];
    focus.value = sought;
  };
  const filter = (column: string, wanted: Filter | undefined) => {
    const { [column]: _, ...others } = filters.value ?? {};
    filters.value = wanted === undefined ? others : { ...others, [column]: wanted };
  };
  const toggleName = (name: string) => {
    const on = names.value.includes(name);
    names.value = on ? names.value.filter((other) => other !== name) : [...names.value, name];
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.target !== scroller.current || combined(event)) return;
    const at = cursor.value;
    const move = moveOf(event.key, at, virtual.rows, virtual.perPage);
    const name = value(pages.row(at), "name");
    if (move !== undefined) goTo(move);
    else if (event.key === "Enter" && at >= 0) pick(at);
    else if (event.key === "f" && name !== undefined) toggleName(String(name));
    else if (event.key === "Escape") focus.value = null;
    else return;
    consume(event);
  };
  const find = async (wanted: NonNullable<Focus>) => {
    const params = { rank: wanted[0], event_id: wanted[1] };
    const { result } = await rpc.call<{ row: number; version: number }>("find", params);
    if (result.row >= 0 && result.version === version.value && focus.value === wanted) goTo(result.row, true);
  };

  const learn = async (column: string, of: number) => {
    const { result } = await rpc.call<Distribution>("distribution", { column });
    if (of === version.value) distributions.value = { ...distributions.value, [column]: result };
  };

  const effects = [
    // what values are like, once the filters are in sight: of what is there now
    effect(() => {
      if (!filtering.value || !version.value) return;
      for (const { name } of shown.value) learn(name, version.value).catch(() => undefined);
    }),
    // another answer, or other columns of it: from the top
    effect(() => {
      void [version.value, shown.value];
      pages.reset();
      top = null;
      failure.value = "";
    }),
    effect(() => {
      void version.value;
      virtual.rows = held();
      cursor.value = virtual.rows ? 0 : -1;
      if (scroller.current) scroller.current.scrollTop = 0;
    }),
    effect(() => {
      const wanted = focus.value;
      if (!version.value || (wanted?.[0] === sought?.[0] && wanted?.[1] === sought?.[1])) return;
      sought = wanted;
      if (wanted) find(wanted).catch(() => undefined); // taken down meanwhile
    }),
  ];
  const observer = new ResizeObserver(look);
  onAbort(signal, () => {
    for (const dispose of effects) dispose();
    observer.disconnect();
    clearTimeout(resting);
    pages.close();
  });

  function List() {
    void drawing.value;
    useLayoutEffect(() => {
      const box = scroller.current;
      if (!box) return undefined;
      observer.observe(box);
      return () => observer.unobserve(box);
    }, []);
    useLayoutEffect(look, [version.value, shown.value, filtering.value]);
    return (
      <Grid
        {...{ id, scroller, sort, onScroll, onKeyDown }}
        columns={shown.value}
        rows={held()}
        range={virtual.range}
        height={virtual.height}
        rowHeight={ROW_HEIGHT}
        maxHeight={maxHeight.value}
        focus={focus.value}
        names={chosenNames.value}
        cursor={cursor.value}
        filtering={
          bar.filtering && filtering.value
            ? { filters: filters.value ?? {}, distributions: distributions.value, change: filter }
            : null
        }
        row={(index) => pages.row(index)}
        offset={(index) => virtual.offset(index)}
        onPick={pick}
        onName={toggleName}
      />
    );
  }

  function Events() {
    const filtered = Object.keys(filters.value ?? {}).length > 0; // that nothing passes can still be changed
    const there = (rows.value > 0 || filtered) && status.value !== "error" && shown.value.length > 0;
    return (
      <section class="hta-events" aria-busy={status.value === "busy"}>
        <Bar {...bar} />
        <StateNotice status={status} message={message} />
        {failure.value && (
          <p class="hta-notice" role="alert" data-severity="error">
            {failure.value}
          </p>
        )}
        {there && <List />}
        {saved && saved.rows < rows.value && (
          <p class="hta-muted">The first {saved.rows} rows were saved with the notebook.</p>
        )}
        {version.value === 0 && status.value === "busy" && (
          <div class="hta-events-grid" aria-hidden="true" style={{ height: `${maxHeight.value}px` }} />
        )}
      </section>
    );
  }
  draw(<Events />, el, signal);
};

/** Say to the style sheet whether columns are out of sight at the right, and how wide the scroll bar is. */
function hint(box: HTMLElement): void {
  const frame = box.parentElement;
  frame?.toggleAttribute("data-more", box.scrollWidth - box.clientWidth - box.scrollLeft > 1);
  frame?.style.setProperty("--hta-scrollbar", `${box.offsetWidth - box.clientWidth}px`);
}
