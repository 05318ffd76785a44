// Does the host or the device decide how long a recording takes? Lines of equal time over the speeds of both.

import { batch } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Button } from "../button";
import { type Contour, contour, levels, type Point } from "../charts/contour";
import { toPng, toSvg } from "../charts/image";
import { Mark } from "../charts/mark";
import { Plot } from "../charts/plot";
import { linear, logarithmic } from "../charts/scale";
import { Table } from "../columns";
import { copyText, download } from "../export";
import { duration, grouped, percent } from "../format";
import { Menu } from "../menu";
import type { SpeedMap } from "../replay/answer";
import type { Control } from "../replay/controls";
import { DataTable } from "../table";
import type { Hand } from "./hand";

const SIZE = 296;
const [LEFT, TOP, RIGHT, BOTTOM] = [72, 8, 16, 40];
const LINES = 8;
const LEAST_STEP = 1; // % of the recorded time
const APART = 18; // px between the numbers of lines
const FILL = 0.13; // opacity that each level adds
const AXES = ["host", "kernels"] as const; // x and y

export function Where({
  hand,
  controls,
  python,
}: {
  hand: Hand;
  controls: readonly Control[];
  python: string;
}) {
  const root = useRef<HTMLElement>(null);
  const map = hand.map.value;
  if (!map && !hand.askMap.value) return null;
  const picture = () => root.current?.querySelector("svg.hta-bars") as SVGSVGElement;
  const background = () => getComputedStyle(picture()).getPropertyValue("--hta-background") || "#fff";
  const table = map && tableOf(map);
  return (
    <section ref={root} class="hta-wi-where" aria-label="Where is it bound?">
      <div class="hta-bar">
        <h4>Where is it bound?</h4>
        <span class="hta-grow" />
        {map && table && (
          <Menu
            label="Export map"
            items={[
              {
                label: "CSV",
                hint: "Download the table of the map",
                run: () => download("speed_map.csv", table.toCsv(), "text/csv"),
              },
              {
                label: "SVG",
                hint: "Download the map as a drawing",
                run: () => download("speed_map.svg", toSvg(picture(), background()), "image/svg+xml"),
              },
              {
                label: "PNG",
                hint: "Download the map as a picture",
                run: async () => download("speed_map.png", await toPng(picture(), background()), "image/png"),
              },
              { label: "Copy Python", hint: `Copy ${python}`, run: () => copyText(python) },
            ]}
          />
        )}
      </div>
      {!map && (
        <p>
          <Button disabled={hand.mapping.value} onClick={() => hand.askMap.value?.()}>
            {hand.mapping.value ? "Replaying" : "Draw the map"}
          </Button>{" "}
          <span class="hta-muted">Python replays the recording once for each pair of speeds.</span>
        </p>
      )}
      {map && table && (
        <div class="hta-wi-map">
          <Drawing map={map} hand={hand} controls={controls} />
          <div>
            <p>
              How long the recording would take, in % of what it took, with the other changes and at other
              speeds of host and compute kernels. Where a line stands upright, only the host decides; where it
              lies, only the device. A click sets both sliders.
            </p>
            <p class="hta-legend">
              <svg width={14} height={14} aria-hidden="true">
                <circle class="hta-wi-recorded" cx={7} cy={7} r={5} />
              </svg>
              as recorded
              <svg width={14} height={14} aria-hidden="true">
                <circle class="hta-wi-chosen" cx={7} cy={7} r={5} />
              </svg>
              the sliders
            </p>
            <details>
              <summary>Table</summary>
              <DataTable table={table} caption="Time by the speeds of host and compute kernels" />
            </details>
          </div>
        </div>
      )}
    </section>
  );
}

interface DrawingProps {
  map: SpeedMap;
  hand: Hand;
  controls: readonly Control[];
}

function Drawing({ map: { speeds, before, after }, hand, controls }: DrawingProps) {
  const [slowest, fastest] = [speeds[0] as number, speeds.at(-1) as number];
  const along = logarithmic(slowest, fastest, SIZE);
  const x = (speed: number) => LEFT + along(speed);
  const y = (speed: number) => TOP + SIZE - along(speed);
  const between = linear(0, speeds.length - 1, SIZE);
  const shares = after.map((time) => (100 * time) / Math.max(before, 1));
  // speeds are nearly a constant factor apart; between two of them lines are straight on the logarithmic axes
  const at = (index: number) => {
    const [low, high] = [speeds[Math.floor(index)] as number, speeds[Math.ceil(index)] as number];
    return along(low) + (index % 1) * (along(high) - along(low));
  };
  const grid = {
    values: shares,
    size: speeds.length,
    place: (column: number, row: number): Point => [LEFT + at(column), TOP + SIZE - at(row)],
  };
  const contours = levels(shares, LINES, LEAST_STEP).map((level) => contour(grid, level));
  const left = AXES.map((name) => hand.settings.value[name] ?? 1);
  const shown = left.map((time) => Math.min(Math.max(1 / time, slowest), fastest)) as Point;
  const choose = (chosen: Point) =>
    batch(() => {
      for (const [i, name] of AXES.entries()) {
        const control = controls.find((one) => one.name === name);
        if (control && !control.nothing) hand.move(control, 1 / (chosen[i] as number));
      }
    });
  const half = between(0.5);
  const ready = hand.ready.value;
  return (
    <Plot
      label="Time by the speeds of host and compute kernels"
      width={LEFT + SIZE + RIGHT}
      height={TOP + SIZE + BOTTOM}
    >
      {contours.map(({ level, area }) => (
        <path key={level} class="hta-wi-area" d={area} fill-opacity={FILL} />
      ))}
      <rect class="hta-wi-frame" x={LEFT} y={TOP} width={SIZE} height={SIZE} />
      {speeds.map((speed) => (
        <g key={speed}>
          <text x={x(speed)} y={TOP + SIZE + 15} text-anchor="middle">{`${grouped(speed)}×`}</text>
          <text x={LEFT - 8} y={y(speed) + 4} text-anchor="end">{`${grouped(speed)}×`}</text>
        </g>
      ))}
      <text x={LEFT + SIZE / 2} y={TOP + SIZE + 33} text-anchor="middle">
        Host, times as fast
      </text>
      <text transform={`translate(14 ${TOP + SIZE / 2}) rotate(-90)`} text-anchor="middle">
        Compute kernels, times as fast
      </text>
      {contours.map(({ level, lines }) => (
        <path key={level} class="hta-wi-line" d={lines.map(([a, b]) => `M${a}L${b}`).join("")} />
      ))}
      {speeds.flatMap((host, i) =>
        speeds.map((device, j) => {
          const k = i * speeds.length + j;
          const text = `Host ${grouped(host)}×, compute kernels ${grouped(device)}×: ${duration(after[k] as number)}, ${percent(shares[k] as number)} of the recorded time`;
          return (
            <Mark
              key={`${host} ${device}`}
              label={ready ? `${text}. Set the sliders.` : text}
              first={k === 0}
              pressed={ready ? left[0] === 1 / host && left[1] === 1 / device : undefined}
              onPick={ready ? () => choose([host, device]) : null}
            >
              <title>{text}</title>
              <rect
                class="hta-bar-hit"
                x={x(host) - half}
                y={y(device) - half}
                width={2 * half}
                height={2 * half}
              />
              <circle class="hta-wi-dot" cx={x(host)} cy={y(device)} r={1.5} />
            </Mark>
          );
        }),
      )}
      {labelled(contours).map(([level, [left, top]]) => (
        <text key={level} class="hta-value hta-wi-level" x={left} y={top + 4} text-anchor="middle">
          {`${grouped(level)} %`}
        </text>
      ))}
      {!contours.length && (
        <text class="hta-value" x={LEFT + SIZE / 2} y={TOP + SIZE / 2} text-anchor="middle">
          Neither changes it by 1 %
        </text>
      )}
      <circle class="hta-wi-recorded" cx={x(1)} cy={y(1)} r={7} />
      <circle class="hta-wi-chosen" cx={x(shown[0])} cy={y(shown[1])} r={5} />
    </Plot>
  );
}

/** A place for the number of each line: where it is nearest to the diagonal and to no other number. */
function labelled(contours: readonly Contour[]): [level: number, at: Point][] {
  const taken: [number, Point][] = [];
  for (const { level, lines } of contours) {
    const middles = lines.map(([a, b]): Point => [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
    const fromDiagonal = ([x, y]: Point) => Math.abs(x - LEFT - (TOP + SIZE - y));
    const free = middles.filter((one) =>
      taken.every(([, [x, y]]) => Math.abs(x - one[0]) > 2 * APART || Math.abs(y - one[1]) > APART),
    );
    const [best] = free.sort((one, two) => fromDiagonal(one) - fromDiagonal(two));
    if (best) taken.push([level, best]);
  }
  return taken;
}

function tableOf({ speeds, before, after }: SpeedMap): Table {
  const columns = {
    host_factor: speeds.flatMap((host) => speeds.map(() => host)),
    device_factor: speeds.flatMap(() => speeds),
    before_ns: after.map(() => before),
    after_ns: after,
  };
  return new Table(
    after.length,
    Object.entries(columns).map(([name, values]) => ({
      name,
      kind: name.endsWith("_ns") ? ("int" as const) : ("float" as const),
      values: Float64Array.from(values),
    })),
  );
}
