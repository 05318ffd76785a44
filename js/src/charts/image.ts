// A chart as a picture of its own: SVG text, or a PNG drawn from it.
//
// On the page a chart takes its colours and fonts from style sheets and variables. A picture has neither, so
// what the browser computed is written into each element.

import { element } from "../page";

const STYLES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-opacity",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
  "paint-order",
] as const;
const SVG = "http://www.w3.org/2000/svg";
const PNG_SCALE = 2;

/** The SVG as a document of its own, on the background that it has on the page. */
export function toSvg(chart: SVGSVGElement, background: string): string {
  const copy = chart.cloneNode(true) as SVGSVGElement;
  const [from, to] = [elements(chart), elements(copy)];
  for (const [i, element] of from.entries()) {
    const style = getComputedStyle(element);
    const target = to[i];
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value) target?.setAttribute(name, value);
    }
    target?.removeAttribute("class");
    target?.removeAttribute("tabindex");
  }
  const ground = document.createElementNS(SVG, "rect");
  ground.setAttribute("width", "100%");
  ground.setAttribute("height", "100%");
  ground.setAttribute("fill", background);
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

/** The picture at twice the size, sharp on any screen. */
export function toPng(chart: SVGSVGElement, background: string): Promise<Blob> {
  return rasterized(toSvg(chart, background));
}

/** An SVG document as a PNG of twice its size. */
export async function rasterized(svg: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svg)}`;
  await image.decode();
  const canvas = element("canvas");
  canvas.width = PNG_SCALE * image.naturalWidth;
  canvas.height = PNG_SCALE * image.naturalHeight;
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png");
  });
}

function elements(root: Element): Element[] {
  return [root, ...root.querySelectorAll("*")];
}
