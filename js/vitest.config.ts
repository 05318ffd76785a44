import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

const TESTS = ["test/**/*.test.{ts,tsx}"];
const REPLACING = ["test/share.test.ts", "test/what_if.test.tsx"]; // modules, by `vi.mock`

export default defineConfig({
  // as in build.mjs: CSS is text
  plugins: [
    {
      name: "css-as-text",
      enforce: "pre",
      load: (id) =>
        id.endsWith(".css") ? `export default ${JSON.stringify(readFileSync(id, "utf8"))};` : undefined,
      transform: (code, id) => (id.endsWith(".css") ? { code, moduleType: "js" } : undefined),
    },
  ],
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  test: {
    environment: "jsdom",
    sequence: { hooks: "list" }, // before a test clears its page
    setupFiles: ["test/listeners.mjs"],
    // A page for each worker instead of each file takes a third of the time; modules that a file replaces it shares
    // with no other.
    projects: [
      {
        extends: true,
        test: {
          name: "one page",
          isolate: false,
          include: TESTS,
          exclude: REPLACING,
          setupFiles: ["test/pages.ts"],
        },
      },
      { extends: true, test: { name: "own page", include: REPLACING } },
    ],
  },
});
