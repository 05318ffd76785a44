// Ways out of a panel: text to the clipboard, a file to the disk.

import type { Rpc } from "./rpc";

export async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // pages served over plain http have no clipboard API
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

export function download(name: string, content: BlobPart | Blob, type: string): void {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const url = URL.createObjectURL(blob);
  const link = document.createElement("a");
  link.href = url;
  link.download = name;
  link.click();
  // the browser reads the blob after this turn
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

/** The panel's whole frame as a file that the kernel makes, asked for in chunks (`BreakdownPanel._on_file`). */
export async function fetchFile(rpc: Rpc, form: "csv" | "parquet"): Promise<Blob> {
  const parts: BlobPart[] = [];
  for (let chunk = 0, chunks = 1; chunk < chunks; chunk++) {
    const answer = await rpc.call<{ chunks: number }>("file", { form, chunk });
    chunks = answer.result.chunks;
    for (const { buffer, byteOffset, byteLength } of answer.buffers) {
      parts.push(new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength));
    }
  }
  return new Blob(parts, { type: form === "csv" ? "text/csv" : "application/vnd.apache.parquet" });
}
