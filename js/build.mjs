// Bundles the ES modules that the Python package ships: the widgets, and what opens each kind of saved report.
// CSS is imported as text: the bundle injects it, so that a saved page needs no second file. Each bundle ends in the
// licences of the packages in it, which go where it goes; THIRD_PARTY_NOTICES.txt has those of all.
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";
import { notices } from "./notices.mjs";

const file = (name) => fileURLToPath(new URL(name, import.meta.url));
const root = file(".");
const built = "../hta_widgets/widgets/static";
const watch = process.argv.includes("--watch");

// text is not minified by esbuild: the style sheets are, before they become text
const styles = {
  name: "styles",
  setup(build) {
    build.onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const css = await readFile(path, "utf8");
      const { code } = await esbuild.transform(css, { loader: "css", minify: !watch });
      return { contents: code, loader: "text", watchFiles: [path] };
    });
  },
};

const context = await esbuild.context({
  entryPoints: {
    widgets: file("src/index.ts"),
    what_if: file("src/what_if.ts"),
    job: file("src/job.ts"),
    diff: file("src/diff.ts"),
    report_explorer: file("src/report/explorer.ts"),
    report_diff: file("src/report/diff.ts"),
    report_what_if: file("src/report/what_if.ts"),
    report_job: file("src/report/job.ts"),
  },
  outdir: file(built),
  absWorkingDir: root,
  metafile: true,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: !watch,
  sourcemap: watch ? "inline" : false,
  legalComments: "none",
  charset: "utf8",
  // not the automatic runtime of tsconfig.json: its calls take more space
  tsconfigRaw: { compilerOptions: { target: "ES2022", jsx: "react" } },
  jsxFactory: "jsxElement",
  jsxFragment: "JsxFragment",
  inject: [file("src/jsx.ts")],
  plugins: [styles],
  logLevel: "info",
});

if (watch) {
  await context.watch();
} else {
  const { metafile } = await context.rebuild();
  await context.dispose();
  for (const [path, { inputs }] of Object.entries(metafile.outputs)) {
    const text = await notices(inputs, root);
    if (text) await appendFile(file(path), `/*!\n${text.replaceAll("*/", "* /")}*/\n`);
  }
  await writeFile(file(`${built}/THIRD_PARTY_NOTICES.txt`), await notices(metafile.inputs, root));
}
