// What hta_widgets/widgets/job_codec.py sends: rank by iteration, and who waits for whom.

export interface CellsLayout {
  ranks: number[];
  /** the iterations of each column */
  columns: number[][];
  parts: string[];
}

export class Cells {
  #row: Map<number, number>;

  constructor(
    readonly layout: CellsLayout,
    private readonly numbers: Float32Array,
  ) {
    this.#row = new Map(layout.ranks.map((rank, row) => [rank, row]));
  }

  /** ns; NaN where the rank lacks the iteration */
  value(part: string, rank: number, column: number): number {
    const [of, row] = [this.layout.parts.indexOf(part), this.#row.get(rank)];
    if (of < 0 || row === undefined) return Number.NaN;
    return (
      this.numbers[(of * this.layout.ranks.length + row) * this.layout.columns.length + column] ?? Number.NaN
    );
  }
}

/** Whom a rank waits for that is not known. */
export const UNKNOWN = -1;

export interface PairsLayout {
  block: number;
  steps: number;
}

export class Pairs {
  readonly block: number;
  /** that waits are the sum of */
  readonly steps: number;
  /** ns by who waits, then by whom it waits for */
  readonly waits = new Map<number, Map<number, number>>();
  /** ns by whom the others wait for */
  readonly caused = new Map<number, number>();

  /** `ranks`: what positions refer to; so many neighbours as the block has are the first of them. */
  constructor(
    numbers: Float32Array,
    { block, steps }: PairsLayout,
    readonly ranks: readonly number[],
  ) {
    this.block = block;
    this.steps = Math.max(1, steps);
    const rankAt = (position: number) => (position < 0 ? UNKNOWN : (ranks[position * block] ?? UNKNOWN));
    for (let at = 0; at < numbers.length; at += 3) {
      const [waits, awaited] = [rankAt(numbers[at] as number), rankAt(numbers[at + 1] as number)];
      const ns = numbers[at + 2] as number;
      const own = this.waits.get(waits) ?? new Map<number, number>();
      this.waits.set(waits, own.set(awaited, (own.get(awaited) ?? 0) + ns));
      this.caused.set(awaited, (this.caused.get(awaited) ?? 0) + ns);
    }
  }

  /** The ranks that stand for `rank` alone, or for its block. */
  members(rank: number): number[] {
    if (this.block === 1) return [rank];
    const at = this.ranks.indexOf(rank);
    return this.ranks.slice(at, at + this.block);
  }
}

export function float32(view: DataView): Float32Array {
  return new Float32Array(view.buffer.slice(view.byteOffset, view.byteOffset + view.byteLength));
}
