// The ceilings of a roofline chart, as the marks name them: of each device its memory, and of each unit its peak.

import type { Table } from "../columns";

/** The units of hta_widgets/analysis/kernels/units.py. */
export const UNIT_NAMES: Readonly<Record<string, string>> = {
  simt_fp64: "fp64 SIMT",
  simt_fp32: "fp32 SIMT",
  simt_fp16: "fp16 SIMT",
  tensor_fp64: "fp64 tensor",
  tensor_fp32: "fp32 tensor",
  tensor_tf32: "TF32 tensor",
  tensor_16bit: "16-bit tensor",
  tensor_8bit: "8-bit tensor",
  tensor_4bit: "4-bit tensor",
};

/** A horizontal roof: no unit of the device computes faster. */
export interface Peak {
  device: string;
  unit: string;
  /** TFLOP/s */
  peak: number;
  /** GB/s of the memory, which the roof meets at its ridge */
  bandwidth: number;
  achievable: boolean;
}

export interface Roofs {
  peaks: Peak[];
  memories: { device: string; bandwidth: number }[];
}

/** FLOP/byte from which on a peak is below what memory allows for. */
export function ridge({ peak, bandwidth }: Pick<Peak, "peak" | "bandwidth">): number {
  return (1e3 * peak) / bandwidth;
}

export function roofsOf(marks: Table): Roofs {
  const [units, devices] = [marks.texts("part"), marks.texts("device")];
  const [peaks, bandwidths] = [marks.numbers("peak"), marks.numbers("bandwidth")];
  const achievable = marks.numbers("achievable");
  const found = new Map<string, Peak>();
  const memories = new Map<string, { device: string; bandwidth: number }>();
  const add = (roof: Peak) => {
    if (roof.peak > 0) found.set(JSON.stringify(roof), roof);
  };
  for (const [row, bandwidth] of bandwidths.entries()) {
    const [device = "", unit = ""] = [devices[row], units[row]];
    if (!(bandwidth > 0)) continue;
    memories.set(device, { device, bandwidth });
    add({ device, unit, peak: peaks[row] ?? 0, bandwidth, achievable: false });
    add({ device, unit, peak: achievable[row] ?? 0, bandwidth, achievable: true });
  }
  return { peaks: [...found.values()].sort((a, b) => b.peak - a.peak), memories: [...memories.values()] };
}
