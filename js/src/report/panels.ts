// Shows and hides the saved panels, as the explorer does in Python while there is a kernel.

import type { Model } from "../model";

type Placed = [area: string, ref: string, kind: string];

/** Keep an explorer's `parts` in step with its `panels`. */
export function arrangePanels(explorer: Model): void {
  const all: Placed[] = explorer.get("parts");
  if (!Array.isArray(all) || !Array.isArray(explorer.get("panels"))) return;
  const fixed = all.filter(([area]) => area !== "panel");
  const arrange = () => {
    const kinds: string[] = explorer.get("panels");
    const panels = kinds.flatMap((kind) => all.filter((part) => part[0] === "panel" && part[2] === kind));
    explorer.set("parts", [...fixed, ...panels]);
  };
  explorer.on("change:panels", arrange);
  arrange();
}
