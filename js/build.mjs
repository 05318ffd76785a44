// Bundles src/index.ts into the one ES module that the Python package ships.
// CSS is imported as text: the bundle injects it, so that a saved page needs no second file.
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import * as esbuild from "esbuild";

const outfile = fileURLToPath(new URL("../hta_widgets/widgets/static/widgets.js", import.meta.url));
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
  entryPoints: [fileURLToPath(new URL("src/index.ts", import.meta.url))],
  outfile,
  bundle: true,
  format: "esm",
  target: "es2022",
  minify: !watch,
  sourcemap: watch ? "inline" : false,
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  plugins: [styles],
  logLevel: "info",
});

if (watch) {
  await context.watch();
} else {
  await context.rebuild();
  await context.dispose();
}
