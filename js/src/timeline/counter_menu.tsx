// A button that opens a list of counters to choose from.

import type { Signal } from "@preact/signals";
import { Popover } from "../popover";
import { visible } from "../visible";
import type { Counters } from "./counters";

export interface CounterMenuProps {
  counters: Counters;
  /** names of those that are drawn */
  chosen: Signal<string[] | undefined>;
  /** learn which there are */
  ask(): void;
}

export function CounterMenu({ counters, chosen, ask }: CounterMenuProps) {
  const names = chosen.value ?? [];
  return (
    <Popover
      label="Counters"
      title="Queue lengths, memory, bandwidth and recorded counters, under the lanes"
      pressed={names.length > 0}
      opened={ask}
    >
      {choices(counters, names).map((name) => (
        <label key={name}>
          <input
            type="checkbox"
            checked={names.includes(name)}
            onChange={(event) => {
              const others = names.filter((one) => one !== name);
              chosen.value = event.currentTarget.checked ? [...others, name] : others;
            }}
          />
          {visible(name)}
        </label>
      ))}
      <p role="status" class="hta-muted">
        {counters.known.value === null ? "Looking for counters…" : counters.missing.value}
      </p>
    </Popover>
  );
}

/** What there is, and what was chosen on other ranks. */
function choices(counters: Counters, names: readonly string[]): string[] {
  return [...new Set([...(counters.known.value ?? []).map(({ name }) => name), ...names])];
}
