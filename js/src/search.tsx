// A box to search names. It writes the query when the hand rests, so that one word is one action to undo.

import type { Signal } from "@preact/signals";
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

const REST_MS = 400;

export interface SearchProps {
  query: Signal<string>;
  /** what it searches */
  label?: string;
  title?: string;
  signal: AbortSignal;
}

export function SearchBox({ query, label = "Search event names", title, signal }: SearchProps) {
  const text = useSignal(query.value);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);

  const settle = (value: string) => {
    clearTimeout(timer.current);
    timer.current = undefined;
    text.value = value;
    if (!signal.aborted) query.value = value.trim();
  };

  // Python, undo or another part set it; what is being typed stays
  useEffect(
    () =>
      query.subscribe((value) => {
        if (timer.current === undefined && value !== text.peek().trim()) text.value = value;
      }),
    [query, text],
  );
  useEffect(() => () => clearTimeout(timer.current), []);

  return (
    <input
      type="search"
      class="hta-search"
      placeholder={label}
      aria-label={label}
      title={title}
      spellcheck={false}
      value={text.value}
      onInput={(event) => {
        const { value } = event.currentTarget;
        text.value = value;
        clearTimeout(timer.current);
        timer.current = setTimeout(() => settle(value), REST_MS);
      }}
      onBlur={() => {
        if (timer.current !== undefined) settle(text.value);
      }}
      onKeyDown={(event) => {
        event.stopPropagation();
        if (event.key === "Enter") settle(text.value);
        else if (event.key === "Escape") settle("");
      }}
    />
  );
}
