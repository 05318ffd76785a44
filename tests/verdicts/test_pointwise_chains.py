"""Chains of pointwise kernels on a real recording, counted again from the plain events."""

from __future__ import annotations

import math
import re
from typing import Any

import pytest

from hta_widgets.analysis import fusion_candidates, what_if
from hta_widgets.analysis.findings import overview
from hta_widgets.analysis.operators.chains import chained_ns
from hta_widgets.analysis.replay import edits
from hta_widgets.trace import Trace
from hta_widgets.trace.scope import Scope
from tests.support import shared_trace
from tests.verdicts.plain_operators import kernels_with_operators
from tests.verdicts.plain_reader import length, overlap, read, union

NAME = "tracelens/h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz"
POINTWISE = re.compile(
    r"aten::(add|sub|mul|div|neg|pow|rsqrt|cos|sin|silu|gelu|tanh|exp|le|eq|gt|where|copy_)$"
)
BYTES = {"c10::BFloat16": 2, "float": 4, "long int": 8, "double": 8, "bool": 1}


def tensors(operator: dict[str, Any]) -> list[tuple[tuple[int, ...], int]]:
    """Shape and bytes of an element of each input that is a tensor."""
    args = operator["args"]
    pairs = zip(args["Input Dims"], args["Input type"], strict=True)
    return [(tuple(shape), BYTES[kind]) for shape, kind in pairs if kind in BYTES]


def written(operator: dict[str, Any]) -> tuple[tuple[int, ...], int]:
    found = tensors(operator)
    if operator["name"] == "aten::copy_":
        return found[0]
    dims = max(len(shape) for shape, _ in found)
    padded = [(1,) * (dims - len(shape)) + shape for shape, _ in found]
    size = max([size for shape, size in found if shape] or [found[0][1]])
    size = 1 if operator["name"] in ("aten::le", "aten::eq", "aten::gt") else size
    return tuple(max(sides) for sides in zip(*padded, strict=True)), size


def read_by(operator: dict[str, Any]) -> list[tuple[tuple[int, ...], int]]:
    return tensors(operator)[1:] if operator["name"] == "aten::copy_" else tensors(operator)


def nbytes(tensor: tuple[tuple[int, ...], int]) -> int:
    return math.prod(tensor[0]) * tensor[1]


def test_what_chains_cost_is_what_the_plain_events_say() -> None:
    file = shared_trace(NAME)
    launched = kernels_with_operators(file)
    assert len({record["args"]["stream"] for record, _ in launched}) == 1
    (rank,) = read(file)
    work = [event.correlation for event in rank.work]  # in order of time, copies and unknown launches as well
    by = {record["args"]["correlation"]: (record, operator) for record, operator in launched}
    often = [id(operator) for _, operator in launched]
    chains: list[list[tuple[dict[str, Any], dict[str, Any]]]] = [[]]
    for correlation in work:
        record, operator = by.get(correlation, ({}, {"name": ""}))
        if (
            not POINTWISE.match(operator["name"])
            or often.count(id(operator)) > 1
            or "Input Dims" not in operator["args"]
        ):
            chains.append([])
        elif chains[-1] and written(chains[-1][-1][1]) in read_by(operator):
            chains[-1].append((record, operator))
        else:
            chains.append([(record, operator)])
    taken, left = 0.0, 0.0
    found = set()
    sums: dict[tuple[str, str], list[float]] = {}
    for chain in chains:
        if len(chain) > 1:
            moved = sum(sum(map(nbytes, read_by(each))) + nbytes(written(each)) for _, each in chain)
            again = sum(2 * nbytes(written(each)) for _, each in chain[:-1])
            times = [1000 * float(record["dur"]) for record, _ in chain]
            taken, left = taken + sum(times), left + sum(times) * max(1 - again / moved, 0)
            found |= {record["args"]["correlation"] for record, _ in chain}
            key = (
                "|".join(record["name"] for record, _ in chain),
                "|".join(each["name"] for _, each in chain),
            )
            figures = (1, round(sum(times)), moved, min(again, moved))
            sums[key] = [a + b for a, b in zip(sums.get(key, [0, 0, 0, 0]), figures, strict=True)]
    trace = Trace.open(file)
    of_rank = trace.rank(trace.ranks[0])
    rows, kept = chained_ns(of_rank)
    assert set(of_rank.correlation[rows].tolist()) == found
    assert of_rank.dur[rows].sum() == pytest.approx(taken)
    assert kept.sum() == pytest.approx(left, abs=len(rows))  # each is rounded up
    candidates = fusion_candidates(trace)
    listed = candidates.set_index(["pattern", "operators"])
    columns = ["count", "device_ns", "bytes", "saved_bytes"]
    assert {key: listed.loc[key, columns].tolist() for key in listed.index} == sums
    assert candidates["saved_device_ns"].sum() == of_rank.dur[rows].sum() - kept.sum()
    # savings do not add: with all chains fused, the host decides
    together = what_if(trace, edits.fused_pointwise(), Scope()).dropna(subset="iteration")
    saved = int((together["before_ns"] - together["after_ns"]).sum())
    assert candidates["saved_ns"].max() <= saved < candidates["saved_ns"].sum()
    windows = rank.device_windows()
    running = union(event.window for event in rank.work if event.correlation in found)
    share = 100 * sum(length(overlap(running, window)) for window in windows) / length(windows)
    row = overview(trace).set_index("topic").loc["pointwise_chains"]
    assert row["share_pct"] == pytest.approx(share * (1 - left / taken), abs=0.1)
