// The one slice looked at: its exact times and its launch flows, which may come later.

import type { Source } from "./source";
import type { Flow, Slice } from "./types";

export class Focus {
  slice: Slice | null = null;
  flows: Flow[] = [];

  constructor(
    private readonly source: Source,
    /** the slice, or what is known of it, changed */
    private readonly changed: () => void,
  ) {}

  /** Focus a slice. Of a merged item it is the longest, whose exact times may have to be fetched. */
  async set(slice: Slice | null): Promise<Slice | null> {
    const exact = slice && slice.count > 1 ? await this.source.slice(slice.id) : slice;
    this.slice = exact;
    this.flows = exact ? this.source.knownFlows(exact) : [];
    this.changed();
    if (exact) void this.#complete(exact);
    return exact;
  }

  /** The other end of the first launch flow. */
  get otherEnd(): Slice | null {
    const flow = this.flows[0];
    return flow ? (flow[0].id === this.slice?.id ? flow[1] : flow[0]) : null;
  }

  async #complete(slice: Slice): Promise<void> {
    const flows = await this.source.flows(slice);
    if (this.slice?.id !== slice.id || flows.length === this.flows.length) return;
    this.flows = flows;
    this.changed();
  }
}
