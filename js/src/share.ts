// What an explorer gives away: a picture, a report, a document, a workbook. Python makes the files, without paths.

import { rasterized } from "./charts/image";
import { copyText, download, type FileForm, fetchFile } from "./export";
import type { Item, Task } from "./menu";
import type { Rpc } from "./rpc";

export interface ShareItem extends Item {
  /** what people type who look for it */
  keywords: string;
  done: string;
}

export function shareItems(rpc: Rpc, name: () => string): ShareItem[] {
  const text = async (form: FileForm, task: Task) => (await fetchFile(rpc, form, task)).text();
  const file = (ending: string) => `${name().replace(/[^\w.-]+/g, "_") || "trace"}.${ending}`;
  const save = async (form: FileForm, task: Task) => {
    const content = await fetchFile(rpc, form, task);
    download(file(form), content, content.type);
  };
  return [
    {
      label: "Copy image",
      hint: "The headline, the findings and what is shown, as a picture",
      keywords: "share png picture screenshot clipboard",
      done: "Copied",
      run: async (task) => {
        const picture = text("svg", task).then(rasterized);
        await copyImage(picture, async () => download(file("png"), await picture, "image/png"));
      },
    },
    {
      label: "Copy Markdown",
      hint: "The findings as text, for an issue, a chat or a pull request",
      keywords: "share md text github slack clipboard summary",
      done: "Copied",
      run: async (task) => copyText(await text("md", task)),
    },
    {
      label: "Save HTML report",
      hint: "What is shown, as one file that opens without Python",
      keywords: "share html report export offline download",
      done: "Saved",
      run: (task) => save("html", task),
    },
    {
      label: "Save Excel workbook",
      hint: "Findings, steps, operators, kernels and collectives as tables",
      keywords: "share xlsx excel csv tables spreadsheet export report download",
      done: "Saved",
      run: (task) => save("xlsx", task),
    },
  ];
}

/** Put a picture on the clipboard; where the page may not, `otherwise`. */
async function copyImage(picture: Promise<Blob>, otherwise: () => Promise<void>): Promise<void> {
  if (!navigator.clipboard || typeof ClipboardItem === "undefined") return otherwise();
  try {
    // with the promise: some browsers allow it only in the turn of the click
    await navigator.clipboard.write([new ClipboardItem({ "image/png": picture })]);
  } catch (error) {
    await picture; // it may be the picture that failed
    if (error instanceof DOMException) return otherwise();
    throw error;
  }
}
