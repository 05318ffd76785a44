// The peaks of the devices: where they are from, and a form to state others. Python checks what is stated again.

import { signal as makeSignal, type Signal } from "@preact/signals";
import { Button } from "./button";
import { UNIT_NAMES } from "./charts/roofs";
import { type Model, trait } from "./model";

/** hta_widgets/widgets/roofline_panel.py describes it. */
export interface Device {
  name: string;
  source: string;
  achievable_source: string;
  memory_gb_s: number | null;
  units: { unit: string; peak: number | null; achievable: number | null }[];
}

type ByUnit = Record<string, number>;
interface Stated {
  memory_gb_s?: number;
  tflops?: ByUnit;
  achievable?: ByUnit;
}

export interface PeaksState {
  devices: Signal<Device[]>;
  stated: Signal<Record<string, Stated>>;
  /** what was typed and is not accepted yet, by device and field */
  typed: Signal<Record<string, string>>;
}

const MEMORY = "memory_gb_s";
const MOST = 1e9; // as hta_widgets/analysis/kernels/stated_peaks.py
/** What a form asks for of a device that nothing is known of. */
const USUAL = ["simt_fp32", "tensor_tf32", "tensor_16bit", "tensor_8bit"];

/** Null for panels without peaks. */
export function peaksOf(model: Model, signal: AbortSignal): PeaksState | null {
  if (model.get("devices") === undefined) return null;
  return {
    devices: trait(model, "devices", signal),
    stated: trait(model, "peaks", signal),
    typed: makeSignal({}),
  };
}

export function PeaksForm({ state, used, frozen }: { state: PeaksState; used: string[]; frozen: boolean }) {
  return (
    <>
      {state.devices.value.map((device) => (
        <DevicePeaks key={device.name} {...{ device, state, used, frozen }} />
      ))}
    </>
  );
}

interface DeviceProps {
  device: Device;
  state: PeaksState;
  used: string[];
  frozen: boolean;
}

function DevicePeaks({ device, state, used, frozen }: DeviceProps) {
  const own = state.stated.value[device.name] ?? {};
  const stated = Object.keys(own).length > 0;
  const title = device.name || "The device (its name was not recorded)";
  const shown = device.units.filter(
    ({ unit, peak }) =>
      peak !== null || used.includes(unit) || own.tflops?.[unit] || (!device.source && USUAL.includes(unit)),
  );
  const key = (field: string) => JSON.stringify([device.name, field]);
  const text = (field: string) => state.typed.value[key(field)] ?? String(statedIn(own, field) ?? "");
  const fields = [MEMORY, ...shown.flatMap(({ unit }) => [`tflops ${unit}`, `achievable ${unit}`])];
  const found = check(device, Object.fromEntries(fields.map((field) => [field, text(field)])));
  const typed = fields.some((field) => key(field) in state.typed.value);

  const forget = () => {
    const others = Object.entries(state.typed.value).filter(([name]) => JSON.parse(name)[0] !== device.name);
    state.typed.value = Object.fromEntries(others);
  };
  const save = (next: Stated) => {
    const others = Object.entries(state.stated.value).filter(([name]) => name !== device.name);
    const entry: [string, Stated][] = Object.keys(next).length ? [[device.name, next]] : [];
    state.stated.value = Object.fromEntries([...others, ...entry]);
  };
  const change = (field: string, value: string) => {
    const all = Object.fromEntries(fields.map((name) => [name, name === field ? value.trim() : text(name)]));
    const result = check(device, all);
    if (result.errors.length) state.typed.value = { ...state.typed.value, [key(field)]: value.trim() };
    else {
      forget();
      save(result.stated);
    }
  };
  const wrong = (field: string) => typed && found.errors.some((error) => error.field === field);
  const input = (field: string, label: string, known: number | null) => (
    <input
      type="text"
      inputMode="decimal"
      spellcheck={false}
      disabled={frozen}
      aria-label={label}
      aria-invalid={wrong(field) || undefined}
      placeholder={known === null ? "unknown" : String(known)}
      value={text(field)}
      onChange={(event) => change(field, event.currentTarget.value)}
    />
  );
  return (
    <details class="hta-peaks" open={!device.source || undefined}>
      <summary>
        Peaks: {title}{" "}
        <span class="hta-muted">
          {stated ? "entered by hand" : device.source || "not known"}
          {stated && device.source && `, else ${device.source}`}
        </span>
      </summary>
      {!device.source && !stated && (
        <p class="hta-notice">
          No datasheet of this device is known, so there are no roofs. Enter the bandwidth of its memory and
          the peaks of its units, and they are drawn.
        </p>
      )}
      <table>
        <thead>
          <tr>
            <th scope="col">Unit</th>
            <th scope="col">
              Peak <span class="hta-muted">TFLOP/s</span>
            </th>
            <th scope="col">
              Achievable <span class="hta-muted">TFLOP/s</span>
            </th>
          </tr>
        </thead>
        <tbody>
          <tr>
            <th scope="row">
              Memory <span class="hta-muted">GB/s</span>
            </th>
            <td>{input(MEMORY, "Bandwidth of memory, GB/s", device.memory_gb_s)}</td>
            <td />
          </tr>
          {shown.map(({ unit, peak, achievable }) => {
            const name = UNIT_NAMES[unit] ?? unit;
            return (
              <tr key={unit}>
                <th scope="row">{name}</th>
                <td>{input(`tflops ${unit}`, `Peak of ${name}, TFLOP/s`, peak)}</td>
                <td>{input(`achievable ${unit}`, `Achievable of ${name}, TFLOP/s`, achievable)}</td>
              </tr>
            );
          })}
        </tbody>
      </table>
      {typed && found.errors.length > 0 && (
        <p class="hta-notice" role="alert" data-severity="error">
          {`Not applied: ${found.errors.map((error) => error.text).join("; ")}.`}
        </p>
      )}
      {!frozen && (stated || typed) && (
        <Button
          onClick={() => {
            forget();
            save({});
          }}
        >
          {device.source ? "Back to the datasheet" : "Clear"}
        </Button>
      )}
      <p class="hta-muted">
        {device.source && "Empty: what the datasheet says. "}
        {device.achievable_source && `Achievable: ${device.achievable_source}.`}
      </p>
    </details>
  );
}

function statedIn(own: Stated, field: string): number | undefined {
  const [name = "", unit = ""] = field.split(" ");
  return name === MEMORY ? own.memory_gb_s : own[name as "tflops" | "achievable"]?.[unit];
}

interface Checked {
  stated: Stated;
  errors: { field: string; text: string }[];
}

/** What the texts of a form state, by the rules of hta_widgets/analysis/kernels/stated_peaks.py. */
export function check(device: Device, texts: Record<string, string>): Checked {
  const stated: Stated = {};
  const errors: Checked["errors"] = [];
  for (const [field, text] of Object.entries(texts)) {
    if (!text) continue;
    const [name = "", unit = ""] = field.split(" ");
    const value = /^[+]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text) ? Number(text) : Number.NaN;
    const what =
      name === MEMORY ? "memory" : `${name === "tflops" ? "peak" : "achievable"} of ${UNIT_NAMES[unit]}`;
    if (!(value > 0 && value <= MOST)) {
      errors.push({ field, text: `${what} must be a number above 0 and at most 1e9, not “${text}”` });
    } else if (name === MEMORY) stated.memory_gb_s = value;
    else {
      const kind = name as "tflops" | "achievable";
      stated[kind] = { ...stated[kind], [unit]: value };
    }
  }
  for (const [unit, value] of Object.entries(stated.achievable ?? {})) {
    const known = device.units.find((each) => each.unit === unit)?.peak;
    const peak = stated.tflops?.[unit] ?? known;
    if (peak != null && value > peak)
      errors.push({
        field: `achievable ${unit}`,
        text: `achievable of ${UNIT_NAMES[unit]} is above its peak`,
      });
  }
  if ((stated.tflops || stated.achievable) && !stated.memory_gb_s && device.memory_gb_s === null)
    errors.push({ field: MEMORY, text: "the bandwidth of memory is needed, too" });
  return { stated, errors };
}
