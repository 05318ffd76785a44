import { readFileSync } from "node:fs";
import { defineConfig } from "vitest/config";

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
  test: { environment: "jsdom", include: ["test/**/*.test.{ts,tsx}"] },
});
