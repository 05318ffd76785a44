// A panel that was opened by hand: its heading comes to the top of what is visible, and has the focus.

/** How long the panel's content may take to change its place. */
const SETTLES_MS = 4000;
const FLASH_MS = 1200;
/** What a reader does who is looking elsewhere by now. */
const MOVES = ["wheel", "pointerdown", "keydown", "touchstart"] as const;

/** Bring the panel to the top, and keep it there until its content is in place or the reader moves. */
export function revealed(panel: HTMLElement, signal: AbortSignal): void {
  const moved = new AbortController();
  const done = () => moved.abort();
  const heading = () => panel.querySelector<HTMLElement>("h3");
  let focused = false;
  const place = () => {
    panel.scrollIntoView({ block: "start" });
    const own = heading();
    if (focused || !own) return;
    focused = true;
    own.tabIndex = -1;
    own.focus({ preventScroll: true });
    panel.dataset.flash = "";
    setTimeout(() => delete panel.dataset.flash, FLASH_MS);
  };
  const resized = new ResizeObserver(place);
  resized.observe(panel);
  if (panel.parentElement) resized.observe(panel.parentElement); // what lies above it may still grow
  moved.signal.addEventListener("abort", () => resized.disconnect());
  signal.addEventListener("abort", done, { signal: moved.signal });
  for (const move of MOVES) document.addEventListener(move, done, { signal: moved.signal, capture: true });
  setTimeout(done, SETTLES_MS);
  place();
}
