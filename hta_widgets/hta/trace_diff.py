"""HTA's `hta.trace_diff`: which operations two recordings run more, less or longer."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from enum import Enum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go

from hta_widgets.analysis.calls.op_counts import Device, counts_by_name, is_counted
from hta_widgets.hta.common.extra_arguments import arguments_of
from hta_widgets.hta.common.rank_frame import hta_rows, rank_frame
from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.methods.conventions import microseconds, show
from hta_widgets.hta.methods.names import shorten_name, shorten_names
from hta_widgets.trace.scope import Scope

Chosen = int | list[int] | None


class DeviceType(Enum):
    """Which operations to compare."""

    CPU = 1
    GPU = 2
    ALL = 3

    @property
    def device(self) -> Device:
        """The `device` argument of `analysis.op_counts`."""
        words: dict[str, Device] = {"CPU": "cpu", "GPU": "gpu", "ALL": "all"}
        return words[self.name]


class LabeledTrace:
    """A recording with a name. All of it is compared, its last step too.

    Args:
        label: the name, ``"t"`` by default.
        t: the traces, as they are; or
        trace_dir: the folder they are in.

    Raises:
        ValueError: neither traces nor an existing folder are given.
    """

    def __init__(
        self, label: str | None = None, t: Trace | None = None, trace_dir: str | Path | None = None
    ) -> None:
        self.label = label or "t"
        if t is None:
            if trace_dir is None or not Path(trace_dir).is_dir():
                raise ValueError(f"neither traces nor a folder of traces: {trace_dir}")
            t = Trace(trace_dir=str(trace_dir))
        # Traces that the caller loaded are not changed: without the last step, on one axis.
        self.t = copy.copy(t)
        self.t.parse_traces()
        self.s_map = self.t.symbol_table.get_sym_index_series()
        self.s_tab = self.t.symbol_table.get_sym_table_series()
        steps = self.t.whole.iterations.drop_duplicates("iteration").sort_values("iteration")
        self.iteration_df = pd.DataFrame(
            {
                "symbol": steps["label"].to_numpy(),
                "id": [self.t.symbol_table.sym_index.get(str(label), -1) for label in steps["label"]],
                "iteration": steps["iteration"].to_numpy(np.int64),
            }
        )

    def __repr__(self) -> str:
        return f"LabeledTrace({self.label!r}, ranks={self.ranks()})"

    def ranks(self) -> list[int]:
        """Numbers of the ranks, ascending."""
        return self.t.get_ranks()

    def iterations(self) -> list[int]:
        """Numbers of the steps (or what else repeats, see `Trace.iterations`) of all ranks."""
        return [int(number) for number in self.iteration_df["iteration"]]

    def scope(self, rank: Chosen = None, iteration: Chosen = None) -> Scope:
        """The ranks and iterations meant: None is the first rank, and the first iteration of the ranks meant.

        Raises:
            ValueError: the trace has none, or not the one asked for.
        """
        ranks = _among(self.ranks(), rank, "rank", self.label)
        recorded = self.t.whole.iterations
        numbers, owners = (recorded[column].to_numpy(np.int64) for column in ("iteration", "rank"))
        of_ranks = np.unique(numbers[np.isin(owners, ranks)]).tolist()
        iterations = _among(
            of_ranks if iteration is None else self.iterations(), iteration, "iteration", self.label
        )
        return Scope(ranks=tuple(ranks), iterations=tuple(iterations))

    def extract_ops(
        self, rank: Chosen = None, iteration: Chosen = None, device_type: DeviceType = DeviceType.ALL
    ) -> pd.DataFrame:
        """The events of some ranks and iterations, as frames of `Trace` (times as in the file).

        Of several ranks, columns `rank` and `idx` (the frame's label) come first.

        Raises:
            ValueError: the trace has no such rank or iteration.
        """
        scope = self.scope(rank, iteration)
        ranks = _listed(rank, scope.ranks)
        frames = [self._ops(rank_trace, scope, device_type) for rank_trace in ranks]
        if len(frames) == 1:
            return frames[0]
        return pd.concat(frames, keys=ranks, names=["rank", "idx"]).reset_index()

    def _ops(self, rank: int, scope: Scope, device_type: DeviceType) -> pd.DataFrame:
        rank_trace = self.t.whole.rank(rank)
        wanted = np.zeros(rank_trace.n, np.bool_)
        wanted[rank_trace.members(scope)] = True
        rows = hta_rows(rank_trace)
        rows = rows[wanted[rows]]
        rows = rows[is_counted(rank_trace, rows, device_type.device, launched=True, waiting=True)]
        specs, extra = arguments_of(rank_trace, self.t.parser_config)
        offset = self.t.whole.clock.offset_ns.get(rank, 0)
        return rank_frame(rank_trace, self.t.symbol_table.sym_index, -offset, specs, extra, rows)

    def get_ops_summary(self, ops: pd.DataFrame) -> pd.DataFrame:
        """Counts and total durations (us) of the events of a frame by category and name.

        Columns: cat, name, short_name, counts, total_duration, cat_id, name_id; by cat_id, then name_id.
        """
        ns = np.rint(ops["dur"].to_numpy(np.float64) * 1000).astype(np.int64)
        sums = (
            pd.DataFrame({"cat_id": ops["cat"].to_numpy(), "name_id": ops["name"].to_numpy(), "ns": ns})
            .groupby(["cat_id", "name_id"], as_index=False)
            .agg(counts=("ns", "size"), ns=("ns", "sum"))
        )
        names = self.s_tab.reindex(sums["name_id"]).to_list()
        return pd.DataFrame(
            {
                "cat": self.s_tab.reindex(sums["cat_id"]).to_numpy(),
                "name": names,
                "short_name": shorten_names(names),
                "counts": sums["counts"],
                "total_duration": microseconds(sums["ns"]),
                "cat_id": sums["cat_id"],
                "name_id": sums["name_id"],
            }
        )


class TraceDiff:
    """Comparisons of two recordings: control and test. Each is a folder, a `Trace` or a `LabeledTrace`."""

    @classmethod
    def compare_traces(
        cls,
        control: str | Path | Trace | LabeledTrace,
        test: str | Path | Trace | LabeledTrace,
        control_rank: Chosen = None,
        test_rank: Chosen = None,
        control_iteration: Chosen = None,
        test_iteration: Chosen = None,
        device_type: DeviceType = DeviceType.ALL,
        use_short_name: bool = False,
    ) -> pd.DataFrame:
        """How often and how long (us) each operation runs in both, and the differences (test - control).

        Ranks and iterations are by default the first. Device work belongs to the iteration that launched it
        (without a recorded launch to none); operators include what they call.

        Returns:
            Index `name` (or `short_name`): those of the control, then those only of the test, each sorted.
            Columns <control>_counts, <control>_total_duration, <test>_counts, <test>_total_duration,
            diff_counts (int64), diff_duration (float64), counts_change_categories ("+", "-", "=").

        Raises:
            ValueError: a side is none of the above, or has no such rank or iteration.
        """
        sides = _labeled(control, "Control"), _labeled(test, "Test")
        labels = [sides[0].label, sides[1].label]
        if labels[0] == labels[1]:
            labels[1] = f"{labels[0]}_control_test"
        counted = [
            _counted(side, side.scope(rank, iteration), device_type, use_short_name)
            for side, rank, iteration in (
                (sides[0], control_rank, control_iteration),
                (sides[1], test_rank, test_iteration),
            )
        ]
        names = [*sorted(counted[0]), *sorted(counted[1].keys() - counted[0].keys())]
        numbers = np.array([[side.get(name, (0, 0)) for name in names] for side in counted], np.int64)
        counts, durations = numbers.reshape(2, len(names), 2).transpose(2, 0, 1)
        index = pd.Index(names, dtype="str", name="short_name" if use_short_name else "name")
        change = counts[1] - counts[0]
        return pd.DataFrame(
            {
                f"{labels[0]}_counts": counts[0],
                f"{labels[0]}_total_duration": microseconds(durations[0]),
                f"{labels[1]}_counts": counts[1],
                f"{labels[1]}_total_duration": microseconds(durations[1]),
                "diff_counts": change,
                "diff_duration": microseconds(durations[1] - durations[0]),
                "counts_change_categories": np.array(["=", "+", "-"])[np.sign(change)],
            },
            index=index,
        )

    @classmethod
    def ops_diff(
        cls,
        control: str | Path | Trace | LabeledTrace,
        test: str | Path | Trace | LabeledTrace,
        control_rank: Chosen = None,
        test_rank: Chosen = None,
        control_iteration: Chosen = None,
        test_iteration: Chosen = None,
        device_type: DeviceType = DeviceType.ALL,
    ) -> dict[str, list[str]]:
        """Names of the operations that only the test runs (added), only the control runs (deleted), and that
        the test runs more often (increased), less often (decreased) or equally often (unchanged).

        Raises:
            ValueError: as `compare_traces`.
        """
        frame = cls.compare_traces(
            control, test, control_rank, test_rank, control_iteration, test_iteration, device_type
        )
        before, after = frame.iloc[:, 0], frame.iloc[:, 2]
        groups = {
            "added": before.eq(0),
            "deleted": after.eq(0),
            "increased": before.gt(0) & after.gt(before),
            "decreased": after.gt(0) & after.lt(before),
            "unchanged": after.eq(before),
        }
        return {group: frame.index[mask].tolist() for group, mask in groups.items()}

    @classmethod
    def visualize_counts_diff(
        cls, df: pd.DataFrame, show_image: bool = True, export_image_path: str | None = None
    ) -> None:
        """Bars of the counts in a frame of `compare_traces`; exporting needs the package kaleido."""
        _shown(_bars(df, "counts", "diff_counts", "Ops Count Comparison"), show_image, export_image_path)

    @classmethod
    def visualize_duration_diff(
        cls, df: pd.DataFrame, show_image: bool = True, export_image_path: str | None = None
    ) -> None:
        """Bars of the durations in a frame of `compare_traces`; exporting needs the package kaleido."""
        figure = _bars(df, "total_duration", "diff_duration", "Ops Duration Comparison")
        figure.update_layout(yaxis_title="Total Duration (us)", autosize=True, width=1000, height=1000)
        _shown(figure, show_image, export_image_path)


def _labeled(side: Any, label: str) -> LabeledTrace:
    if isinstance(side, LabeledTrace):
        return side
    if isinstance(side, Trace):
        return LabeledTrace(label, side)
    if isinstance(side, str | Path):
        return LabeledTrace(label, trace_dir=side)
    raise ValueError(f"a side is a folder, a Trace or a LabeledTrace, not {type(side).__name__}")


def _listed(chosen: Chosen, default: Iterable[int] | None) -> list[int]:
    """What was asked for, in the order given and each once."""
    requested = [chosen] if isinstance(chosen, int) else chosen
    return list(dict.fromkeys(default or () if requested is None else requested))


def _among(known: Sequence[int], chosen: Chosen, what: str, label: str) -> list[int]:
    if not isinstance(chosen, int | list | None) or isinstance(chosen, bool):
        raise ValueError(f"{what} is a number or a list of numbers, not {type(chosen).__name__}")
    wanted = _listed(chosen, known[:1])
    unknown = sorted(set(wanted).difference(known), key=wanted.index)
    if unknown or not wanted:
        raise ValueError(f"{label} has no {what} {unknown[0] if unknown else ''}: it has {list(known)}")
    return wanted


def _counted(
    side: LabeledTrace, scope: Scope, device_type: DeviceType, use_short_name: bool
) -> dict[str, tuple[int, int]]:
    """name -> (count, ns)."""
    found = counts_by_name(side.t.whole, scope, device_type.device, launched=True, waiting=True)
    if not use_short_name:
        return found
    short: dict[str, tuple[int, int]] = {}
    for name, (count, ns) in found.items():
        known = short.get(shorten_name(name), (0, 0))
        short[shorten_name(name)] = (known[0] + count, known[1] + ns)
    return short


def _bars(df: pd.DataFrame, what: str, difference: str, title: str) -> go.Figure:
    labels = [
        column.removesuffix("_total_duration")
        for column in map(str, df)
        if column.endswith("_total_duration")
    ]
    if len(labels) < 2:
        raise ValueError("the frame is not one of compare_traces: it has no two columns ..._total_duration")
    names = [str(name).replace("<", "&lt;") for name in df.index]
    bars = [go.Bar(name=label, x=names, y=df[f"{label}_{what}"]) for label in labels[:2]]
    figure = go.Figure([*bars, go.Bar(name="Difference", x=names, y=df[difference])])
    figure.update_layout(barmode="group", title_text=title)
    return figure


def _shown(figure: go.Figure, show_image: bool, path: str | None) -> None:
    if show_image:
        show([figure])
    if path:
        figure.write_image(path)
