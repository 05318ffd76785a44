// Which rows of a long list are in sight, and where they lie: only those are in the page.
//
// A browser lays nothing out beyond some 17 million pixels. A list that would be taller gets that much and no more:
// its scrollbar then leads proportionally through the rows, while wheel and keys still move pixel by pixel.

const TALLEST = 8_000_000;
/** A scroll by more screens than this is a jump of the scrollbar. */
const JUMP = 2;

export class Virtual {
  rows = 0;
  /** height of the part of the list that is in sight, in px */
  viewport = 0;
  /** px above the upper edge of the viewport, as if the list had its full height */
  #top = 0;
  /** the scroll position that stands for it */
  #scroll = 0;

  constructor(
    readonly rowHeight: number,
    private readonly tallest = TALLEST,
  ) {}

  /** Height to give the list. */
  get height(): number {
    return Math.min(this.#full, this.tallest);
  }

  /** The rows in sight, also those of which only a part is: from the first up to, without, the last. */
  get range(): [number, number] {
    const first = Math.floor(this.#top / this.rowHeight);
    const last = Math.ceil((this.#top + this.viewport) / this.rowHeight);
    return [Math.max(0, first), Math.min(this.rows, last)];
  }

  /** Rows that fit in the viewport. */
  get perPage(): number {
    return Math.max(1, Math.floor(this.viewport / this.rowHeight));
  }

  /** Upper edge of a row within the list. */
  offset(row: number): number {
    return row * this.rowHeight - this.#top + this.#scroll;
  }

  /** The list was scrolled to here. */
  scrolled(to: number): void {
    const by = to - this.#scroll;
    this.#scroll = to;
    if (to <= 0) this.#top = 0;
    else if (to >= this.height - this.viewport) this.#top = this.#furthest;
    else if (!this.#scaled || Math.abs(by) > JUMP * this.viewport) this.#top = to * this.#scale;
    else this.#top += by;
    this.#top = Math.max(0, Math.min(this.#furthest, this.#top));
  }

  /** Where to scroll to so that the row is in sight: no further than needed, or to the middle. */
  reveal(row: number, middle = false): number {
    const upper = row * this.rowHeight;
    const lower = upper + this.rowHeight - this.viewport;
    if (upper < this.#top || lower > this.#top) {
      const edge = upper < this.#top ? upper : lower;
      this.#top = Math.max(0, Math.min(this.#furthest, middle ? (upper + lower) / 2 : edge));
    }
    return this.settle();
  }

  /** Where the scrollbar belongs: scrolling pixel by pixel leaves it where it stood, so set it when that rests. */
  settle(): number {
    this.#scroll = this.#scaled ? Math.round(this.#top / this.#scale) : this.#top;
    return this.#scroll;
  }

  get #full(): number {
    return this.rows * this.rowHeight;
  }

  get #furthest(): number {
    return Math.max(0, this.#full - this.viewport);
  }

  get #scaled(): boolean {
    return this.#full > this.tallest;
  }

  /** px of the list for one of the scrollbar */
  get #scale(): number {
    return this.#scaled ? this.#furthest / (this.height - this.viewport) : 1;
  }
}
