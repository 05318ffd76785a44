// The area of a roofline chart: its axes, and the roofs with their names.

import { amount, grouped, significant } from "../format";
import { max, min } from "./numbers";
import { type Box, LINE, overlap, textWidth } from "./place";
import type { Row } from "./roof_rows";
import { type Peak, type Roofs, ridge, UNIT_NAMES } from "./roofs";
import { logarithmic, logTicks } from "./scale";

const ROOM = 1.7; // by which the axes reach beyond what is drawn

type Log = ReturnType<typeof logarithmic>;
type Ends = [low: number, high: number];

export interface Area {
  x: Log;
  y: Log;
  ends: [x: Ends, y: Ends];
  inner: number;
  height: number;
}

export function Grid({ x, y, ends: [across, up], inner, height }: Area) {
  return (
    <g>
      {logTicks(...across, inner).map(({ value, labelled }) => (
        <g key={value} transform={`translate(${x(value)} 0)`}>
          <line class="hta-grid" data-minor={!labelled || undefined} y2={height} />
          {labelled && (
            <text y={height + 14} text-anchor="middle">
              {tickText(value)}
            </text>
          )}
        </g>
      ))}
      {logTicks(...up, height).map(({ value, labelled }) => (
        <g key={value} transform={`translate(0 ${y(value)})`}>
          <line class="hta-grid" data-minor={!labelled || undefined} x2={inner} />
          {labelled && (
            <text x={-6} y={4} text-anchor="end">
              {tickText(value)}
            </text>
          )}
        </g>
      ))}
      <text x={inner} y={height + 30} text-anchor="end">
        arithmetic intensity, FLOP/byte
      </text>
      <text x={-44} y={-8}>
        TFLOP/s
      </text>
    </g>
  );
}

export function RoofLines({ roofs, x, y, ends: [across, up], inner }: Area & { roofs: Roofs }) {
  return (
    <g>
      {roofs.memories.map(({ device, bandwidth }) => {
        const own = roofs.peaks.filter((roof) => roof.device === device);
        const to = own.length ? ridge({ peak: max(own.map(({ peak }) => peak)) ?? 1, bandwidth }) : across[1];
        const rate = (at: number) => (at * bandwidth) / 1e3;
        // cut at the lower edge, and at the upper one where no peak ends it
        const from = Math.max(across[0], (1e3 * up[0]) / bandwidth);
        const end = Math.min(to, (1e3 * up[1]) / bandwidth);
        return (
          <path
            key={device}
            class="hta-roof-line"
            d={`M${x(from)} ${y(rate(from))}L${x(end)} ${y(rate(end))}`}
          />
        );
      })}
      {roofs.peaks.map((roof) => (
        <path
          key={`${roof.device} ${roof.unit} ${roof.achievable}`}
          class="hta-roof-line"
          data-achievable={roof.achievable || undefined}
          d={`M${Math.max(0, x(ridge(roof)))} ${y(roof.peak)}H${inner}`}
        />
      ))}
    </g>
  );
}

export function axes(
  drawn: readonly Row[],
  roofs: Roofs,
  inner: number,
  height: number,
): [Log, Log, Area["ends"]] {
  const xs = [...drawn.map(({ x }) => x), ...roofs.peaks.map(ridge)];
  const ys = [...drawn.map(({ y }) => y), ...roofs.peaks.map(({ peak }) => peak)];
  const around = (all: number[]): Ends => [(min(all) ?? 1) / ROOM, (max(all) ?? 1) * ROOM];
  const [across, up] = [around(xs), around(ys)];
  const flat = logarithmic(...up, height);
  const y = Object.assign((value: number) => height - flat(value), {
    invert: (at: number) => flat.invert(height - at),
  });
  return [logarithmic(...across, inner), y, [across, up]];
}

/** Where the levels of the roofs run. */
export function roofLevels(roofs: Roofs, x: Log, y: Log, inner: number): Box[] {
  return roofs.peaks.map((roof) => {
    const from = Math.max(0, x(ridge(roof)));
    return { x: from, y: y(roof.peak) - 1, width: inner - from, height: 2 };
  });
}

interface RoofLabel {
  text: string;
  box: Box;
  transform?: string;
}

/** Each roof has its name on it: units at the right end, memory along its slope. */
export function roofLabels(roofs: Roofs, x: Log, y: Log, ends: Area["ends"], inner: number): RoofLabel[] {
  const several = roofs.memories.length > 1;
  const of = (device: string) => (several ? `${device}, ` : "");
  const found: RoofLabel[] = [];
  const level = (peak: number, peaks: Peak[]) => {
    const [one] = peaks as [Peak];
    const units = [...new Set(peaks.map(({ unit }) => UNIT_NAMES[unit] ?? unit))].join(", ");
    const value = significant(peak);
    const text = one.achievable ? `achievable ${value}` : `${of(one.device)}${units} ${value} TFLOP/s`;
    const width = textWidth(text);
    // nothing can be left of the ridge at the height of the roof; where that is too narrow, at the right end
    const start = x(ridge(one));
    const left = { x: start - width - 6, y: y(peak) - LINE / 2, width, height: LINE };
    const above = { x: inner - width, y: y(peak) - LINE - 1, width, height: LINE };
    const below = { ...above, y: y(peak) + 2 };
    const places = one.achievable && inner - width > start ? [below, left, above] : [left, above, below];
    const box = places.find((place) => place.x >= 0 && found.every((other) => !overlap(place, other.box)));
    if (box) found.push({ text, box });
  };
  for (const [, peaks] of grouping(
    roofs.peaks,
    ({ peak, device, achievable }) => `${peak} ${device} ${achievable}`,
  ))
    level(peaks[0]?.peak ?? 0, peaks);
  for (const { device, bandwidth } of roofs.memories) {
    const text = `${of(device)}memory ${amount(bandwidth, "gbps")}`;
    const low = Math.max(ends[0][0], (1e3 * ends[1][0]) / bandwidth);
    const [ax, ay] = [x(low), y((low * bandwidth) / 1e3)];
    const far = low * 10;
    const angle = Math.atan2(y((far * bandwidth) / 1e3) - ay, x(far) - ax);
    const width = textWidth(text);
    const [dx, dy] = [Math.cos(angle), Math.sin(angle)];
    const [sx, sy] = [ax + 10 * dx + 5 * dy, ay + 10 * dy - 5 * dx];
    const box = { x: sx, y: sy + width * dy, width: width * dx, height: -width * dy };
    found.push({ text, box, transform: `translate(${sx} ${sy}) rotate(${(180 * angle) / Math.PI})` });
  }
  return found;
}

function grouping<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) groups.set(key(item), [...(groups.get(key(item)) ?? []), item]);
  return groups;
}

/** 0.001, 20, 1,000, 1e6 */
export function tickText(value: number): string {
  return value >= 1e5 || value < 1e-4 ? value.toExponential().replace("+", "") : grouped(value);
}
