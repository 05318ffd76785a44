// The events as a file that the kernel makes, fetched in pieces that fit a message.

import type { Rpc } from "../rpc";

export type FileFormat = "csv" | "parquet";

const TYPES: Record<FileFormat, string> = { csv: "text/csv", parquet: "application/vnd.apache.parquet" };

/** Fetch the events as a file; `progress` hears the share that has come. */
export async function fetchFile(
  rpc: Rpc,
  format: FileFormat,
  progress: (share: number) => void,
  signal: AbortSignal,
): Promise<Blob> {
  const key = Math.random().toString(36).slice(2);
  const pieces: BlobPart[] = [];
  const forget = () => void rpc.call("forget_export", { key }).catch(() => undefined);
  signal.addEventListener("abort", forget, { once: true });
  for (let chunk = 0, chunks = 1; chunk < chunks; chunk++) {
    const answer = await rpc.call<{ chunks: number }>("export", { format, key, chunk }, { signal });
    chunks = answer.result.chunks;
    const [piece] = answer.buffers;
    if (piece) pieces.push(new Uint8Array(piece.buffer as ArrayBuffer, piece.byteOffset, piece.byteLength));
    progress((chunk + 1) / chunks);
  }
  return new Blob(pieces, { type: TYPES[format] });
}
