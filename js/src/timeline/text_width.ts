// How wide texts are in the timeline's font. Measuring leaves objects behind, and a frame asks for hundreds of widths:
// those that were measured are kept.

const MOST = 20_000;
const widths = new Map<string, number>();

/** Width of a text in CSS pixels; the context has the timeline's font. */
export function textWidth(context: CanvasRenderingContext2D, text: string): number {
  let width = widths.get(text);
  if (width === undefined) {
    if (widths.size > MOST) widths.clear();
    width = context.measureText(text).width;
    widths.set(text, width);
  }
  return width;
}
