"""Which operator launched which kernel, the slow and obvious way: by time, from the plain events."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

Record = dict[str, Any]


def kernels_with_operators(file: Path) -> list[tuple[Record, Record]]:
    """Each kernel with the operator that was the last to open around its launch, by time of the kernels."""
    text = gzip.decompress(file.read_bytes()) if file.suffix == ".gz" else file.read_bytes()
    records = [record for record in json.loads(text)["traceEvents"] if record.get("ph") == "X"]
    launches = {
        record["args"]["correlation"]: record
        for record in records
        if record.get("cat") in ("cuda_runtime", "cuda_driver") and "correlation" in record.get("args", {})
    }
    operators = defaultdict(list)
    for record in sorted(records, key=lambda record: (record["ts"], -record["dur"])):
        if record.get("cat") == "cpu_op":
            operators[record["tid"]].append(record)
    starts = {thread: [record["ts"] for record in of_thread] for thread, of_thread in operators.items()}
    found = []
    for record in records:
        call = launches.get(record["args"].get("correlation")) if record.get("cat") == "kernel" else None
        if call is None or call["tid"] not in operators:
            continue
        at = bisect_right(starts[call["tid"]], call["ts"]) - 1
        of_thread = operators[call["tid"]]
        while at >= 0 and of_thread[at]["ts"] + of_thread[at]["dur"] < call["ts"]:
            at -= 1
        if at >= 0:
            found.append((record, of_thread[at]))
    return sorted(found, key=lambda pair: pair[0]["ts"])
