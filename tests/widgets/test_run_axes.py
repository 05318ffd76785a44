"""Corresponding instants of three runs, one of which lacks most of the work of the others."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hta_widgets.trace import Scope
from hta_widgets.widgets.run_axes import RunAxes
from tests.analysis.kineto_file import event, job, kernel, launch

OPERATORS = ["aten::first", *(f"aten::between_{number}" for number in range(10)), "aten::last"]


def test_time_rises_in_every_run_though_one_has_no_time_for_what_the_others_do(tmp_path: Path) -> None:
    """In the third run two nanoseconds lie where the others have ten kernels."""
    runs = {}
    for name, operators, gap in (
        ("base", OPERATORS, 1_000),
        ("like it", OPERATORS, 1_100),
        ("short", [OPERATORS[0], OPERATORS[-1]], 2),
    ):
        events = []
        for step in range(3):
            begin = 100_000 * step
            events.append(event("user_annotation", f"ProfilerStep#{step}", begin, 99_000))
            at = begin + 30_000
            for place, operator in enumerate(operators):
                called, correlation = begin + 100 + 1_000 * place, 1 + 100 * step + place
                events += [
                    event("cpu_op", operator, called, 500),
                    launch(called + 100, correlation),
                    kernel("k", at, 1_000, correlation=correlation),
                ]
                at += 1_000 + gap
        (tmp_path / name).mkdir()
        runs[name] = job(tmp_path / name, events)
    axes = RunAxes(runs)
    scopes = dict.fromkeys(runs, Scope())
    coarse = axes.anchors(scopes, 0, (100_000, 199_000), by_work=False).times
    found = axes.anchors(scopes, 0, (100_000, 199_000), by_work=True).times
    assert found.shape[1] > coarse.shape[1]
    assert (np.diff(coarse, axis=1) > 0).all() and (np.diff(found, axis=1) > 0).all()
    assert {tuple(column) for column in coarse.T} <= {tuple(column) for column in found.T}

    # what each has is found in the others, in the step that corresponds; what one lacks is not
    kernels = {name: trace.events().query("name == 'k'") for name, trace in runs.items()}
    ids = {name: frame["event_id"].tolist() for name, frame in kernels.items()}
    per_step = len(OPERATORS)
    assert axes.counterparts(scopes, 0, 0, ids["base"][per_step + 3]) == [
        (0, ids["base"][per_step + 3]), (0, ids["like it"][per_step + 3]), None
    ]  # fmt: skip
    last = axes.counterparts(scopes, 2, 0, ids["short"][5])
    assert last == [(0, ids["base"][-1]), (0, ids["like it"][-1]), (0, ids["short"][5])]
    outside = runs["base"].events().query("name == 'ProfilerStep#1'")["event_id"].iloc[0]
    assert axes.counterparts(scopes, 0, 0, int(outside)) == [(0, int(outside)), None, None]
