"""Training loops with known times: small programs that are simulated, recorded in part, and judged."""
