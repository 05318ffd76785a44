// Lights up a time for a moment, so that the eye finds what was just shown.

const PULSES = 3;
const MS = 1800;

export class Flash {
  extent: readonly [number, number] | null = null;
  #begun = 0;

  constructor(
    private readonly el: HTMLElement,
    private readonly redraw: () => void,
    private readonly signal: AbortSignal,
  ) {}

  begin(extent: readonly [number, number]): void {
    this.extent = extent;
    this.#begun = performance.now();
    this.el.dataset.flash = extent.join(" ");
    this.#step();
  }

  /** 0 to 1: pulses that fade, or a steady light for those who want no motion. */
  get strength(): number {
    const share = (performance.now() - this.#begun) / MS;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return 0.6;
    return (1 - share) * (0.5 + 0.5 * Math.cos(2 * Math.PI * PULSES * share));
  }

  #step(): void {
    if (this.signal.aborted) return;
    if (performance.now() - this.#begun >= MS) {
      this.extent = null;
      delete this.el.dataset.flash;
    } else requestAnimationFrame(() => this.#step());
    this.redraw();
  }
}
