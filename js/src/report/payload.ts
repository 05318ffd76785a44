// Reads the block that hta_widgets/report/payload.py writes: JSON with buffers beside it, compressed.

export interface Question {
  method: string;
  /** null: there is no answer, and the view goes on without */
  result: unknown;
  buffers: DataView[];
  once: boolean;
}

export interface Content {
  /** the part to draw; it names the others */
  root: string;
  about: ReportFacts;
  parts: Record<string, { state: Record<string, unknown>; questions: Question[] }>;
}

export interface ReportFacts {
  /** when it was made, for people */
  made: string;
  /** what made it */
  version: string;
  /** what else the reader should know, one sentence each */
  notes: string[];
}

interface Block {
  value: Content;
  paths: (string | number)[][];
  sizes: number[];
}

export async function unpack(base64: string): Promise<Content> {
  const packed = Uint8Array.from(atob(base64.trim()), (character) => character.charCodeAt(0));
  const stream = (new Response(packed).body as ReadableStream).pipeThrough(new DecompressionStream("gzip"));
  const bytes = await new Response(stream).arrayBuffer();
  const length = new DataView(bytes).getUint32(0, true);
  const { value, paths, sizes }: Block = JSON.parse(
    new TextDecoder().decode(new Uint8Array(bytes, 4, length)),
  );
  let at = 4 + length;
  paths.forEach((path, index) => {
    const size = sizes[index] as number;
    put(value, path, new DataView(bytes, at, size));
    at += size;
  });
  return value;
}

function put(root: unknown, path: readonly (string | number)[], buffer: DataView): void {
  // biome-ignore lint/suspicious/noExplicitAny: Python wrote the path for this very value
  let place: any = root;
  for (const key of path.slice(0, -1)) place = place[key];
  place[path.at(-1) as string | number] = buffer;
}
