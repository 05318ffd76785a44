// MemoryView: a memory snapshot. It shows what it comes down to, and a panel for each answer.

import { trait, type View } from "../model";
import { draw } from "../shared";
import { Slot } from "../slot";
import { announceView } from "../static_preview";

type Placed = [area: string, ref: string, kind: string];

/** The panels beside which another has room. */
const NARROW = new Set(["fragmentation", "blockers"]);

export const memory: View = ({ model, el, signal, host }) => {
  const headline = trait<string>(model, "headline", signal);
  const parts = trait<Placed[]>(model, "parts", signal);
  announceView(model, el, signal);

  function Memory() {
    return (
      <article class="hta-explorer hta-memory" aria-label="Memory snapshot">
        <h2>{headline.value}</h2>
        <div class="hta-panels">
          {parts.value.map(([area, ref, kind]) => (
            <div key={ref} class="hta-panel" data-kind={kind} data-wide={!NARROW.has(kind)}>
              <Slot {...{ area, ref_: ref, host, signal }} />
            </div>
          ))}
        </div>
      </article>
    );
  }
  draw(<Memory />, el, signal);
};
