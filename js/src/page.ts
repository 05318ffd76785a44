// What views do with the page around them.

/** A new element, to be put somewhere. */
export function element<Tag extends keyof HTMLElementTagNameMap>(
  tag: Tag,
  className = "",
): HTMLElementTagNameMap[Tag] {
  const made = document.createElement(tag);
  made.className = className;
  return made;
}

/** Call once the view is disposed of, or the work is cancelled. */
export function onAbort(signal: AbortSignal, callback: () => void): void {
  signal.addEventListener("abort", callback, { once: true });
}

/** The event was meant for this part alone: neither the notebook nor the browser acts on it. */
export function consume(event: { preventDefault(): void; stopPropagation(): void }): void {
  event.preventDefault();
  event.stopPropagation();
}
