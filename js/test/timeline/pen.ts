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

/** In place of ImageData. */
export class Pixels {
  readonly data: Uint8ClampedArray;
  constructor(
    readonly width: number,
    readonly height: number,
  ) {
    this.data = new Uint8ClampedArray(4 * width * height);
  }
}
