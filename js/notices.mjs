// The licences of the packages that esbuild has put into a bundle, as their authors ask for.
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";

const PACKAGE = /^(.*node_modules\/(?:@[^/]+\/)?[^/]+)\//; // greedy: of nested packages the innermost
const TEXT = /^(licen[cs]e|copying|notice)/i;

/** The notices for what esbuild's metafile lists as inputs, one for each licence text; "" without packages. */
export async function notices(inputs, root) {
  const folders = new Set(Object.keys(inputs).flatMap((path) => PACKAGE.exec(path)?.[1] ?? []));
  const packages = new Map();
  for (const folder of [...folders].sort()) {
    const path = join(root, folder);
    const { name, version } = JSON.parse(await readFile(join(path, "package.json"), "utf8"));
    const files = (await readdir(path)).filter((file) => TEXT.test(file)).sort();
    if (!files.length) throw new Error(`${name} is bundled, but ${path} has no licence to go with it`);
    const texts = await Promise.all(files.map((file) => readFile(join(path, file), "utf8")));
    const text = texts.map((each) => each.replaceAll("\r\n", "\n").trim()).join("\n\n");
    packages.set(text, [...(packages.get(text) ?? []), `${name} ${version}`]);
  }
  return [...packages].map(([text, names]) => `${names.join(", ")}\n\n${text}\n`).join("\n");
}
