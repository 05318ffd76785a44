// The rows of a roofline chart: what each mark stands for, and its shape.

import type { Table } from "../columns";
import { duration, percent, significant } from "../format";
import { UNIT_NAMES } from "./roofs";

/** Shape and colour say the same. */
export const BOUNDS: Record<string, [shape: Shape, colour: string, words: string]> = {
  compute: ["circle", "compute", "bound by compute"],
  memory: ["square", "memory", "bound by memory"],
  "": ["triangle", "idle", "bound unknown"],
};

export type Shape = "circle" | "square" | "triangle";

export interface Row {
  row: number;
  label: string;
  short: string;
  detail: string;
  x: number;
  y: number;
  size: number;
  share: number;
  moved: number;
  efficiency: number;
  headroom: number;
  bound: string;
  unit: string;
  achievable: number;
}

/** What a mark stands for, its name first. */
export function facts(row: Row): string[] {
  const roof = row.bound ? ` of the ${row.bound} roof` : "";
  const reach = row.bound === "compute" && row.achievable > 0 ? (100 * row.y) / row.achievable : Number.NaN;
  return [
    row.detail ? `${row.label}, ${row.detail}` : row.label,
    `${duration(row.size)} (${percent(row.share)} of device time)`,
    `${significant(row.x)} FLOP/byte`,
    `${significant(row.y)} TFLOP/s${row.unit ? ` on ${UNIT_NAMES[row.unit] ?? row.unit}` : ""}`,
    `${significant(row.moved)} GB/s`,
    Number.isFinite(row.efficiency) ? `${percent(row.efficiency)}${roof}` : "roof unknown",
    ...(Number.isFinite(reach) ? [`${percent(reach)} of what is achievable`] : []),
    ...(Number.isFinite(row.headroom) ? [`headroom ${duration(row.headroom)}`] : []),
  ];
}

export function rowsOf(marks: Table): Row[] {
  const number = (name: string) => marks.numbers(name);
  const text = (name: string) => marks.texts(name);
  const [labels, shorts, details] = [text("label"), text("short"), text("detail")];
  const [bounds, units] = [text("bound"), text("part")];
  const names = ["x", "y", "size", "share", "moved", "efficiency", "headroom", "achievable"] as const;
  const columns = names.map((name) => [name, number(name)] as const);
  return labels.map((label, row) => ({
    ...(Object.fromEntries(columns.map(([name, all]) => [name, all[row] ?? Number.NaN])) as Record<
      (typeof names)[number],
      number
    >),
    row,
    label,
    short: shorts[row] ?? label,
    detail: details[row] ?? "",
    bound: bounds[row] ?? "",
    unit: units[row] ?? "",
  }));
}

/** Shapes of the area of a circle with this radius. */
export function outline(shape: Shape, x: number, y: number, r: number): string {
  if (shape === "circle") return `M${x - r} ${y}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0Z`;
  if (shape === "square") {
    const side = r * Math.sqrt(Math.PI);
    return `M${x - side / 2} ${y - side / 2}h${side}v${side}h${-side}Z`;
  }
  const side = r * Math.sqrt((4 * Math.PI) / Math.sqrt(3));
  const tall = (side * Math.sqrt(3)) / 2;
  return `M${x} ${y - (2 * tall) / 3}l${side / 2} ${tall}h${-side}Z`;
}
