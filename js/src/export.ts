// Ways out of a panel: text to the clipboard, a file to the disk.

import type { Task } from "./menu";
import { element } from "./page";
import type { Rpc } from "./rpc";

export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // pages served over plain http have no clipboard API
  const area = element("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function download(name: string, content: BlobPart | Blob, type: string): void {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const url = URL.createObjectURL(blob);
  const link = element("a");
  link.href = url;
  link.download = name;
  link.click();
  // the browser reads the blob after this turn
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

export type FileForm = "csv" | "parquet" | "html" | "md" | "svg" | "xlsx";

const TYPES: Record<FileForm, string> = {
  csv: "text/csv",
  parquet: "application/vnd.apache.parquet",
  html: "text/html",
  md: "text/markdown",
  svg: "image/svg+xml",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
};

/** The part's whole frame as a file that the kernel makes, in pieces (hta_widgets/widgets/files.py). */
export async function fetchFile(rpc: Rpc, form: FileForm, { progress, signal }: Task): Promise<Blob> {
  const key = Math.random().toString(36).slice(2);
  const pieces: BlobPart[] = [];
  const forget = () => void rpc.call("forget_file", { key }).catch(() => undefined);
  signal.addEventListener("abort", forget, { once: true });
  for (let chunk = 0, chunks = 1; chunk < chunks; chunk++) {
    const answer = await rpc.call<{ chunks: number }>("file", { form, key, chunk }, { signal });
    chunks = answer.result.chunks;
    for (const { buffer, byteOffset, byteLength } of answer.buffers) {
      pieces.push(new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength));
    }
    progress((chunk + 1) / chunks);
  }
  signal.removeEventListener("abort", forget);
  return new Blob(pieces, { type: TYPES[form] });
}
