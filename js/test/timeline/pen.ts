/** A pen of a canvas that draws nothing: of each call it notes the name and what it was given. */
export function pen(note: (name: string, ...given: never[]) => unknown): CanvasRenderingContext2D {
  return new Proxy({} as CanvasRenderingContext2D, {
    get:
      (_, name) =>
      (...given: never[]) =>
        note(String(name), ...given),
    set: () => true,
  });
}
