// A button that opens the ways to arrange lanes: what they are grouped by, where Python's frames are, and the usual order.

import type { Signal } from "@preact/signals";
import { Button } from "../button";
import { Popover, Radios } from "../popover";
import type { TrackName } from "./lane_choice";
import type { Grouping } from "./lane_groups";

export type Python = "nested" | "apart";

export interface LaneMenuProps {
  groups: Signal<Grouping | undefined>;
  order: Signal<TrackName[] | undefined>;
  /** null where there are no such frames, or no kernel to arrange them */
  python: Signal<Python> | null;
}

const GROUPINGS: [Grouping, label: string][] = [
  ["rank", "Rank"],
  ["process", "Rank, then process and device"],
  ["lane", "Stream or kind of thread, all ranks together"],
];

export function LaneMenu({ groups, order, python }: LaneMenuProps) {
  const by = groups.value ?? "rank";
  const moved = (order.value ?? []).length > 0;
  const apart = python?.value === "apart";
  return (
    <Popover
      label="Lanes"
      title="How lanes are grouped and ordered"
      pressed={by !== "rank" || moved || apart}
    >
      <Radios
        label="Group by"
        choices={GROUPINGS}
        chosen={by}
        choose={(value) => {
          groups.value = value;
        }}
      />
      {python && (
        <label title="Modules and other Python frames do not stand around the operators they call">
          <input
            type="checkbox"
            checked={apart}
            onChange={() => {
              python.value = apart ? "nested" : "apart";
            }}
          />
          Modules and Python on lanes of their own
        </label>
      )}
      {moved ? (
        <Button
          onClick={() => {
            order.value = [];
          }}
        >
          Usual order
        </Button>
      ) : (
        <p class="hta-muted">Drag a name to move its lanes; a click pins them.</p>
      )}
    </Popover>
  );
}
