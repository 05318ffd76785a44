"""A manifest's entry as `record.py` writes it, for tests that record nothing."""

from typing import Any

from recorder import manifest
from recorder.setup import Setup
from recorder.spread import spread


def entry(setup: Setup, ranks: int = 1) -> dict[str, Any]:
    """The entry of a setup that ran on `ranks` ranks, with made-up times."""
    numbers = spread([1_000, 2_000, 4_000])
    return {
        "setup": manifest.plain_setup(setup),
        "command": "python record.py",
        "started": "2026-01-01T00:00:00+00:00",
        "ranks": ranks,
        "backend": "gloo" if ranks > 1 else None,
        "environment": {
            **dict.fromkeys(("driver", "cuda", "rocm", "nccl")),
            **dict.fromkeys(("device", "python", "torch", "platform", "float32_matmul_precision"), "x"),
            "devices": 1,
        },
        "steps": {"active": 3},
        "step_time": {"step": dict.fromkeys(("before", "after", "profiled"), numbers)},
        "traces": [{"file": f"x/{rank}", "bytes": 1000, "within_limit": True} for rank in range(ranks)],
    }
