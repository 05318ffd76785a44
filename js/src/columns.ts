// A DataFrame as it travels to the browser: typed columns in one buffer (hta_widgets/widgets/table_codec.py).

/**
 * The trait's value: numbers lie in `data`, text in the column itself. They are little-endian: float64, or unsigned
 * integers of so many bytes, the distance from the least.
 */
export interface EncodedTable {
  rows: number;
  columns: {
    name: string;
    kind: "int" | "float" | "text";
    offset?: number;
    bytes?: number;
    least?: number;
    values?: string[];
    short?: Short;
  }[];
  data: DataView | null;
}

export type Column =
  | { name: string; kind: "int" | "float"; values: Float64Array }
  | { name: string; kind: "text"; values: string[]; short: Short };

/** What cells show instead of the names of events that are too long for them. */
export type Short = Record<string, string>;

/** Columns by position and by name. Missing numbers are NaN. */
export class Table {
  constructor(
    readonly rows: number,
    readonly columns: readonly Column[],
  ) {}

  column(name: string): Column | undefined {
    return this.columns.find((item) => item.name === name);
  }

  /** The numbers of a column; empty where there is no such column. */
  numbers(name: string): Float64Array {
    const column = this.column(name);
    return column && column.kind !== "text" ? column.values : new Float64Array();
  }

  /** The texts of a column; empty where there is no such column. */
  texts(name: string): string[] {
    const column = this.column(name);
    return column?.kind === "text" ? column.values : [];
  }

  short(name: string): Short {
    const column = this.column(name);
    return column?.kind === "text" ? column.short : {};
  }

  /** A text of a column as a cell shows it. */
  cell(name: string, text: string): string {
    const short = this.short(name);
    return Object.hasOwn(short, text) ? (short[text] as string) : text;
  }

  /** As CSV with full precision (RFC 4180). */
  toCsv(): string {
    const lines = [this.columns.map((column) => field(column.name)).join(",")];
    for (let row = 0; row < this.rows; row++) {
      lines.push(this.columns.map((column) => field(text(column.values[row]))).join(","));
    }
    return `${lines.join("\r\n")}\r\n`;
  }
}

export function decode(encoded: EncodedTable | null | undefined): Table {
  if (!encoded) return new Table(0, []);
  const columns = encoded.columns.map((column): Column => {
    const { name, values: texts = [], short = {} } = column;
    if (column.kind === "text") return { name, kind: "text", values: texts, short };
    const { offset = 0, bytes = 8, least = 0 } = column;
    const values = new Float64Array(encoded.rows).fill(Number.NaN);
    const { data } = encoded;
    if (data)
      for (let row = 0; row < encoded.rows; row++)
        values[row] = least + number(data, offset + bytes * row, bytes);
    return { name, kind: column.kind, values };
  });
  return new Table(encoded.rows, columns);
}

function number(data: DataView, at: number, bytes: number): number {
  if (bytes === 1) return data.getUint8(at);
  if (bytes === 2) return data.getUint16(at, true);
  return bytes === 4 ? data.getUint32(at, true) : data.getFloat64(at, true);
}

function text(value: number | string | undefined): string {
  if (value === undefined || Number.isNaN(value)) return "";
  return String(value);
}

// A spreadsheet runs a cell that starts with one of = + - @: names come from traces, so they are quoted as text.
function field(value: string): string {
  const safe = /^[=+\-@\t]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** Orders rows by a column, those without a value last either way. */
export function byColumn(table: Table, name: string, descending: boolean): (a: number, b: number) => number {
  const values = (table.column(name)?.values ?? []) as ArrayLike<number>; // texts compare alike
  const lacking = (value: number) => Number(!value && value !== 0);
  const sign = descending ? -1 : 1;
  return (a, b) => {
    const [x, y] = [values[a] as number, values[b] as number];
    return lacking(x) - lacking(y) || sign * (x > y ? 1 : x < y ? -1 : 0);
  };
}
