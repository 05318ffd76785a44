"""What is asked of each recording, area by area: names of questions and their answers."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from functools import partial
from inspect import signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
from traitlets import HasTraits

import hta_widgets
from hta_widgets import MemorySnapshot, Scope, Trace, TraceAnalysis, TraceExplorer, analysis, edits, examples
from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.analysis.compare.run_story import run_story
from hta_widgets.analysis.inspect.window import WINDOW_BY
from hta_widgets.analysis.registry import ANALYSES, TABLES
from hta_widgets.charts.marks import marks
from hta_widgets.cli.opening import kept_open
from hta_widgets.cli.run import main
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.timeline import (
    GROUPINGS,
    LaneChoice,
    Pyramid,
    build_lanes,
    doubtful,
    gap_at,
    lane_table,
    matching_kinds,
    outline,
    pack_slices,
    pack_window,
    relative,
    same_kind,
    window_sums,
)
from hta_widgets.version import __version__
from tests.answers.columns import Column, columns_of
from tests.memory_snapshot.allocator import MB, Allocator, write
from tests.memory_snapshot.test_snapshot import run as allocate
from tests.report.reading import content
from tests.support import ROOT, SHARED_TRACES

Asked = Iterator[tuple[str, Callable[[], Any]]]


def answers(area: str, path: Path) -> dict[str, dict[str, Column]]:
    """All answers of an area about a recording, as columns; a refusal is an answer, too."""
    found = {}
    for question, ask in AREAS[area](Trace.open(path, cache=False), path):
        try:
            answer = ask()
        except (HtaWidgetsError, ValueError) as error:
            answer = {"refused": f"{type(error).__name__}: {error}"}
        found[question] = columns_of(answer)
    return found


def _part(trace: Trace) -> Scope:
    """The middle of a recording: it cuts events, steps and gaps, and leaves out the last rank of several."""
    begin, end = trace.extent_ns
    third = (end - begin) // 3
    return Scope(ranks=tuple(trace.ranks[:-1]) or None, window_ns=(begin + third, end - third))


def _trace(trace: Trace, _: Path) -> Asked:
    yield "events", trace.events
    yield "iterations", lambda: trace.iterations
    yield "health", lambda: trace.health
    yield "records", trace.records
    yield "summary", lambda: {name: value for name, value in trace.summary.items() if name != "files"}
    yield "trust", lambda: trace.trust.as_dict()
    yield "vetoes", trace.vetoes


def _analyses(trace: Trace, _: Path) -> Asked:
    for name, entry in {**ANALYSES, **TABLES}.items():
        yield name, partial(entry.answer, trace)
    yield (
        "sentences",
        lambda: {
            name: _or_refused(lambda entry=entry: entry.said(entry.answer(trace), trace))
            for name, entry in {**ANALYSES, **TABLES}.items()
        },
    )


def _asked_otherwise(trace: Trace, _: Path) -> Asked:
    """The same analyses of a part, and with each choice of each option."""
    part = _part(trace)
    for name, entry in {**ANALYSES, **TABLES}.items():
        yield f"{name} of a part", partial(entry.answer, trace, part)
        for option in entry.options:
            for choice in option.choices:
                if choice != option.default:
                    asked = {option.name: choice}
                    yield f"{name} {option.name}={choice}", partial(entry.answer, trace, **asked)


def _or_refused(ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except (HtaWidgetsError, ValueError) as error:
        return f"{type(error).__name__}: {error}."


def _pictures(trace: Trace, _: Path) -> Asked:
    for name, entry in ANALYSES.items():
        yield name, lambda entry=entry: _picture(entry, entry.answer(trace))


def _picture(entry: Any, frame: pd.DataFrame) -> dict[str, Any]:
    figure = entry.figure(frame).to_plotly_json()
    figure["layout"].pop("template", None)  # plotly's own
    return {"marks": marks(entry.chart, frame) if entry.chart else None, "figure": figure}


_FURTHER = (
    "annotated_kernels", "counters", "job_iterations", "job_ranks", "memory_advice", "replay_quality",
    "savings", "speed_map", "strategy_memory", "stream_idle_intervals",
)  # fmt: skip
_EDITS = (
    edits.host(0.5), edits.launches(0.5), edits.syncs(), edits.allocator(), edits.pauses(),
    edits.kernels(2.0), edits.at_roof(), edits.copies(2.0), edits.communication(), edits.copy_bandwidth(20.0),
    edits.bus_bandwidth(100.0), edits.overlap(), edits.prompt_communication(), edits.prefetch(),
    edits.fused_optimizer(), edits.graphs(), edits.fused_attention(), edits.fused_pointwise(),
    edits.no_recomputation(), edits.padded_products(), edits.batched_products(), edits.full_waves(),
    edits.filled_device(), edits.no_stragglers(), edits.median_rank(0), edits.faster_links(2.0),
    edits.larger_buckets(1 << 26), edits.kernels(3.0, name="*gemm*"), edits.without("aten::*norm*"),
)  # fmt: skip


def _further(trace: Trace, _: Path) -> Asked:
    """Answers that no panel shows."""
    part = _part(trace)
    for name in _FURTHER:
        yield name, partial(getattr(analysis, name), trace)
        yield f"{name} of a part", partial(getattr(analysis, name), trace, part)
    for by in ("bound_by", "name", "kind", "event_class"):
        yield (
            f"critical_path_summary by={by}",
            lambda by=by: analysis.critical_path_summary(analysis.critical_path(trace), by),
        )
    for by in WINDOW_BY:
        yield f"inspect_window by={by}", partial(analysis.inspect_window, trace, part, by)
    steps = sorted(set(trace.iterations["iteration"]))
    if len(steps) > 1:
        ends = (trace.ranks[0], steps[0]), (trace.ranks[-1], steps[-1])
        yield "compare_iterations", partial(analysis.compare_iterations, trace, steps[0], steps[-1])
        yield "step_difference", partial(analysis.step_difference, trace, *ends)
    yield "what_if", lambda: [_or_refused(partial(analysis.what_if, trace, edit)) for edit in _EDITS]
    yield "replayed_events", partial(analysis.replayed_events, trace, [edits.host(0.5), edits.kernels(2.0)])
    yield "replayed_path", partial(analysis.replayed_path, trace, [edits.host(0.5), edits.kernels(2.0)])


def _inspect(trace: Trace, _: Path) -> Asked:
    """Of each category the first event, one in its midst and the last; a gap of each rank's."""
    for rank in trace.ranks[:2]:
        columns = trace.rank(rank)
        for code, category in enumerate(columns.categories):
            rows = np.flatnonzero(columns.category == code)
            chosen = dict.fromkeys(int(rows[int(at * (len(rows) - 1))]) for at in (0, 0.37, 1) if len(rows))
            numbers = [int(columns.event_id[row]) for row in chosen]
            yield (
                f"{category} of {rank}",
                lambda rank=rank, numbers=numbers: [
                    analysis.inspect_event(trace, rank, number).to_dict() for number in numbers
                ],
            )
    yield (
        "gaps",
        lambda: [
            analysis.inspect_gap(trace, int(row.rank), int(row.stream), int(row.start_ns) + 1)
            for row in analysis.idle_gaps(trace).groupby("rank").nth([0, 3, 9]).itertuples()
        ],
    )


def _timeline(trace: Trace, _: Path) -> Asked:
    lanes = build_lanes([trace.rank(rank) for rank in trace.ranks])
    pyramid = Pyramid(lanes)
    begin, end = lanes.extent
    every = range(len(lanes.offsets) - 1)
    windows = {f"1/{part} in {pixels}": (begin + (end - begin) // part, part, pixels)
               for part, pixels in ((1, 300), (7, 200), (61, 900), (1009, 40))}  # fmt: skip
    labels = {rank: str(rank) for rank in trace.ranks}
    yield "slices", lambda: [pack_slices(lanes), lanes.event_id, lanes.offsets]
    yield "levels", lambda: pyramid.levels
    yield "outline", lambda: outline(lanes, labels, trace.iterations, 100)
    yield "doubtful", lambda: doubtful(trace, lanes)
    for name, (at, part, pixels) in windows.items():
        until = at + (end - begin) // part
        yield (
            f"window {name}",
            lambda at=at, until=until, pixels=pixels: pack_window(
                lanes, pyramid.window(at, until + 1, pixels, every), begin
            ),
        )
        yield f"sums {name}", partial(window_sums, lanes, at, until + 1, every)
    for groups in GROUPINGS:
        choice = LaneChoice(words="-annotation", groups=groups)
        yield f"lanes by {groups}", partial(lane_table, lanes, labels, choice)
    some = range(0, lanes.n, max(1, lanes.n // 97))
    yield "neighbours", lambda: [
        [relative(lanes, at, "parent"), relative(lanes, at, "child"), same_kind(lanes, at, 1),
         same_kind(lanes, at, -1), lanes.flows_of(at), gap_at(lanes, every, float(lanes.start[at]))]
        for at in some
    ]  # fmt: skip
    yield "matches", lambda: matching_kinds(lanes.kinds, lanes.kinds.names, "gemm")


_COMMANDS = (
    ("summary",), ("summary", "--json"), ("diagnose", "--json"), ("diagnose",), ("health",),
    ("health", "--json"), ("analyze", "overview"),
    ("analyze", "kernel_breakdown", "--top", "5", "--where", "rank=0"),
    ("analyze", "idle_gaps", "--where", "dur_ns>5us", "--sort", "dur_ns:asc", "--format", "csv"),
    ("what-if", "--edit", "kernels(2.0)"), ("event", "--refs", "0:1"),
)  # fmt: skip


def _commands(trace: Trace, path: Path) -> Asked:
    for command in _COMMANDS:
        verb, *options = command
        options, last = (options[:-2], [options[-1]]) if "--refs" in options else (options, [])
        first = [options.pop(0)] if verb == "analyze" else []
        argv = [verb, *first, str(path), *last, *options, "-q"]
        yield " ".join(command), partial(_printed, argv, path)


def _printed(argv: list[str], path: Path) -> dict[str, Any]:
    out, err = io.StringIO(), io.StringIO()
    with kept_open(2), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(argv)
    text = out.getvalue().replace(__version__, "VERSION")
    for folder in (path, SHARED_TRACES.parent, ROOT):
        text = text.replace(str(folder), "PATH")
    return {"code": code, "lines": text.splitlines(), "errors": len(err.getvalue().splitlines())}


_HTA = (
    "get_comm_comp_overlap", "get_profiler_steps", "get_potential_stragglers", "get_gpu_kernel_breakdown",
    "get_gpu_kernels_with_user_annotations", "get_gpu_user_annotation_breakdown", "get_temporal_breakdown",
    "get_aten_op_kernels_and_delay", "get_cuda_kernel_launch_stats", "get_queue_length_time_series",
    "get_queue_length_summary", "get_time_spent_blocked_on_full_queue", "get_memory_bw_time_series",
    "get_memory_bw_summary", "get_idle_time_breakdown",
)  # fmt: skip


def _hta(_: Trace, path: Path) -> Asked:
    job = TraceAnalysis(trace_dir=str(path))
    for name in _HTA:
        method = getattr(job, name)
        if name == "get_time_spent_blocked_on_full_queue":
            yield name, lambda method=method: method(job.get_queue_length_time_series(), 2)
        else:
            options = {"visualize": False} if "visualize" in signature(method).parameters else {}
            options |= {"rank": 0} if name == "get_gpu_kernels_with_user_annotations" else {}
            yield name, partial(method, **options)
    yield "critical path", lambda: _path(job)


def _path(job: TraceAnalysis) -> Any:
    found = job.critical_path_analysis(0, "ProfilerStep", 1)
    if found is None:
        return {"found": None}
    graph, complete = found
    return {"found": complete, "summary": graph.summary().to_frame().reset_index(), "nodes": len(graph.nodes)}


def _report(trace: Trace, _: Path) -> Asked:
    """All that an explorer shows, without the code of the page."""
    explorer = TraceExplorer(trace)
    with TemporaryDirectory() as folder:
        page = explorer.to_html(Path(folder, "page.html"))
        parts = content(Path(page).read_text(encoding="utf-8"))["parts"]
    explorer.close()
    numbers: dict[str, int] = {}
    for part in parts.values():
        view = str(part["state"].get("_view", "")) + " " + str(part["state"].get("kind", ""))
        numbers[view] = numbers.get(view, 0) + 1
        yield f"{view.strip()} {numbers[view]}".removesuffix(" 1"), lambda part=part: part


# each recording beside what it is compared with
_BESIDE = {
    "gpt2_baseline": "gpt2_ddp", "h100_gpt2_fp32": "h100_gpt2_tf32",
    "gpt2_fsdp_full_shard": "gpt2_fsdp_shard_grad_op",
}  # fmt: skip


def _comparisons(trace: Trace, path: Path) -> Asked:
    other = examples.path(_BESIDE[path.name])
    runs = {"base": trace, "other": Trace.open(other, cache=False)}
    for name, entry in COMPARISONS.items():
        yield name, partial(entry.function, runs)
        yield f"{name} in words", lambda entry=entry: {"sentence": entry.sentence(entry.function(runs))}
        for option in entry.options:
            for choice in option.choices:
                if choice != option.default:
                    yield (
                        f"{name} {option.name}={choice}",
                        partial(entry.function, runs, **{option.name: choice}),
                    )
    falls, lines = (partial(COMPARISONS[name].function, runs) for name in ("step_waterfall", "diff"))
    yield "story", lambda: run_story(runs, None, falls(), lines()).as_dict()
    for options in (("--format", "json"), ("--by", "op", "--top", "5", "--fail-on", "step_time>+3%")):
        yield (
            f"diff {' '.join(options)}",
            partial(_printed, ["diff", str(path), str(other), *options, "-q"], path),
        )


def _snapshots(_: Trace, __: Path) -> Asked:
    """Memory snapshots of an allocator that is simulated."""
    for number in (0, 1):
        with TemporaryDirectory() as folder:
            allocator = Allocator(800 * MB, expandable=bool(number))
            allocate(allocator, number)
            snapshot = MemorySnapshot.open(write(Path(folder, "s.pickle"), allocator))
        for name in ("summary", "timeline", "fragmentation", "blockers", "out_of_memory"):
            yield f"{name} of {number}", getattr(snapshot, name)
        for by in ("line", "module", "stack", "annotation"):
            yield f"peak of {number} by {by}", partial(snapshot.peak, by=by)
            yield f"owners of {number} by {by}", partial(snapshot.owners, by=by)
        yield f"sentence of {number}", lambda snapshot=snapshot: {"sentence": snapshot.sentence()}


def _widgets(_: Trace, __: Path) -> Asked:
    """What callers may set of each public widget, its defaults and its bounds."""
    for name in sorted(hta_widgets.__all__):
        of = getattr(hta_widgets, name)
        if isinstance(of, type) and issubclass(of, HasTraits):
            own = {
                key: one for key, one in of.class_traits().items() if one.this_class.__module__[:4] == "hta_"
            }
            yield (
                name,
                lambda own=own: {
                    key: [
                        type(one).__name__,
                        one.default_value,
                        getattr(one, "min", None),
                        getattr(one, "max", None),
                    ]
                    for key, one in sorted(own.items())
                },
            )


AREAS: dict[str, Callable[[Trace, Path], Asked]] = {
    "trace": _trace,
    "analyses": _analyses,
    "options": _asked_otherwise,
    "pictures": _pictures,
    "further": _further,
    "inspect": _inspect,
    "timeline": _timeline,
    "commands": _commands,
    "hta": _hta,
    "report": _report,
    "comparisons": _comparisons,
    "snapshots": _snapshots,
    "widgets": _widgets,
}
