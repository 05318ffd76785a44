import { expect, it } from "vitest";
import { inWords } from "../src/charts/unit";

it("says columns in words", () => {
  expect(["caused_wait_ns", "mfu_reading", "limiter"].map(inWords)).toEqual([
    "caused wait",
    "how well MFU is known",
    "limiter",
  ]);
});
