// A dependency graph by hand, and its bytes as hta_widgets/widgets/replay_codec.py writes them.

import type { Control } from "../src/replay/controls";

type Arrays = Record<string, [type: "u1" | "u2" | "i4" | "f8", values: number[]]>;

// A call begins at 100; the kernel that it launches starts 17 later, of which 7 are a residual, and takes 41.
// Its end ends the call, whose own time is 1; the host goes on for 3.
export const GRAPH: Arrays = {
  degree: ["u1", [0, 1, 2, 1, 2, 1]],
  back: ["i4", [1, 1, 2, 1, 3, 1, 1]],
  weight: ["i4", [100, 10, 0, 41, 1, 0, 3]],
  long_edge: ["i4", [2]],
  long_weight: ["f8", [-(2 ** 31) - 5]],
  rest_edge: ["i4", [1]],
  rest: ["f8", [7]],
  group: ["u2", [0, 1, 1, 2, 1, 3, 0]],
  pair_edge: ["i4", [1]],
  pair_device: ["i4", [3]],
  pair_share: ["f8", [4]],
  event: ["i4", [2]],
  event_part: ["u1", [0]],
  "cut_edge:loader": ["i4", [0]],
  "cut_weight:loader": ["f8", [40]],
};

const BYTES = { u1: Uint8Array, u2: Uint16Array, i4: Int32Array, f8: Float64Array };

export function packed(arrays: Arrays): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  const entries: unknown[] = [];
  let offset = 0;
  for (const [name, [type, values]] of Object.entries(arrays)) {
    const part = new Uint8Array(BYTES[type].from(values).buffer);
    entries.push([name, type, offset, values.length]);
    parts.push(part);
    offset += part.length;
  }
  const header = new TextEncoder().encode(JSON.stringify({ arrays: entries, groups: 4 }));
  const bytes = new Uint8Array(4 + header.length + offset);
  new DataView(bytes.buffer).setUint32(0, header.length, true);
  bytes.set(header, 4);
  let at = 4 + header.length;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

export function control(name: string, given: Partial<Control> = {}): Control {
  return {
    name,
    label: name,
    hint: "",
    off: "",
    speed: false,
    bound: false,
    scaled: [],
    removed: [],
    nothing: false,
    time_class: "host",
    ...given,
  };
}
