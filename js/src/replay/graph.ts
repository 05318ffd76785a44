// Reads the dependency graph of a rank that hta_widgets/widgets/replay_codec.py writes.

/** Times and weights are whole ns in Float64Array: exact up to 2^53 ns, which is 104 days. */
export interface Graph {
  nodes: number;
  groups: number;
  /** the edges of node v are first[v] to first[v + 1] */
  first: Int32Array;
  /** of each edge: the node that it comes from, ns, and its group */
  source: Int32Array;
  weight: Float64Array;
  residual: Float64Array;
  group: Uint16Array | Uint32Array;
  /** a residual's edge, the edge of work beside it, and how much of the residual is that work's */
  pairEdge: Int32Array;
  pairDevice: Int32Array;
  pairShare: Float64Array;
  /** of each device event: the node of its start, which its end follows, and its part of the device's time */
  event: Int32Array;
  eventPart: Uint8Array;
  /** by name of an edit: the edges that it shortens, and their weights then */
  cuts: Record<string, Cut>;
}

export interface Cut {
  edge: Int32Array;
  weight: Float64Array;
}

const TYPES = { u1: Uint8Array, u2: Uint16Array, u4: Uint32Array, i4: Int32Array, f8: Float64Array };

interface Header {
  arrays: [name: string, type: keyof typeof TYPES, offset: number, length: number][];
  groups: number;
}

export function unpack(bytes: Uint8Array<ArrayBuffer>): Graph {
  const length = new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
  const header: Header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const arrays = new Map(
    header.arrays.map(([name, type, offset, count]) => {
      const start = bytes.byteOffset + 4 + length + offset;
      const end = start + count * TYPES[type].BYTES_PER_ELEMENT;
      return [name, new TYPES[type](bytes.buffer.slice(start, end))]; // a copy, since offsets are not aligned
    }),
  );
  const at = <T>(name: string) => arrays.get(name) as T;
  const degree = at<Uint8Array | Uint16Array>("degree");
  const back = at<Int32Array>("back");
  const first = new Int32Array(degree.length + 1);
  const source = new Int32Array(back.length);
  for (let node = 0, e = 0; node < degree.length; node++) {
    for (const end = e + (degree[node] as number); e < end; e++) source[e] = node - (back[e] as number);
    first[node + 1] = e;
  }
  const weight = Float64Array.from(at<Int32Array>("weight"));
  spread(weight, at("long_edge"), at("long_weight"));
  const residual = new Float64Array(weight.length);
  spread(residual, at("rest_edge"), at("rest"));
  const cuts = header.arrays
    .filter(([name]) => name.startsWith("cut_edge:"))
    .map(([name]) => [
      name.slice("cut_edge:".length),
      { edge: at(name), weight: at(name.replace("edge", "weight")) },
    ]);
  return {
    nodes: degree.length,
    groups: header.groups,
    first,
    source,
    weight,
    residual,
    group: at("group"),
    pairEdge: at("pair_edge"),
    pairDevice: at("pair_device"),
    pairShare: at("pair_share"),
    event: at("event"),
    eventPart: at("event_part"),
    cuts: Object.fromEntries(cuts),
  };
}

/** Write values to their places. */
export function spread(into: Float64Array, places: Int32Array, values: Float64Array): void {
  for (let i = 0; i < places.length; i++) into[places[i] as number] = values[i] as number;
}
