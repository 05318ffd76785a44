// A key that is held zooms or pans evenly, frame by frame, whatever rate the keyboard repeats at: after a second of
// zooming a fifteenth of the time is visible.

/** So long a key is down before it counts as held: a tap is one step. */
const HELD_AFTER_MS = 150;

export class Held {
  #code = "";
  #waiting: ReturnType<typeof setTimeout> | undefined;
  #frame = 0;

  /** `move` is called with the seconds since it was called last. */
  constructor(el: HTMLElement, signal: AbortSignal) {
    const stop = (event: Event) => {
      if (event.type !== "keyup" || (event as KeyboardEvent).code === this.#code) this.stop();
    };
    for (const name of ["keyup", "blur"]) el.addEventListener(name, stop, { signal });
    signal.addEventListener("abort", () => this.stop(), { once: true });
  }

  /** The key went down. Returns false if it is held already: the keyboard repeats it. */
  down(code: string, move: (seconds: number) => void): boolean {
    if (code === this.#code) return false;
    this.stop();
    this.#code = code;
    this.#waiting = setTimeout(() => {
      let before = performance.now();
      const step = (now: number) => {
        move(Math.max(0, now - before) / 1000);
        before = Math.max(before, now);
        this.#frame = requestAnimationFrame(step);
      };
      this.#frame = requestAnimationFrame(step);
    }, HELD_AFTER_MS);
    return true;
  }

  stop(): void {
    clearTimeout(this.#waiting);
    cancelAnimationFrame(this.#frame);
    this.#code = "";
  }
}
