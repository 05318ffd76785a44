"""A comparison as text: doubts, the step, its parts, the lines that changed, and the limits."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from hta_widgets.analysis.compare.measures import STEP_TIME
from hta_widgets.analysis.compare.noise import LEAST_CHANGE
from hta_widgets.analysis.compare.registry import COMPARISONS
from hta_widgets.analysis.compare.waterfall import STEP
from hta_widgets.charts.spec import Waterfall
from hta_widgets.cli.comparison import Comparison
from hta_widgets.cli.table import frame_lines
from hta_widgets.cli.terminal import cells_of, hanging, heading, painted, pieces_of, printable
from hta_widgets.cli.verdicts import Verdict
from hta_widgets.errors import MissingDataError
from hta_widgets.formatting import byte_size, duration, percent, signed
from hta_widgets.kernel_names import short_kernel_names

_LINES = 20
_TITLES = {"call_path": "Call paths", "op": "Operators"}
_WORDS = {"holds": "ok", "within noise": "ok", "fails": "FAIL"}
_COLOURS = {"holds": "muted", "within noise": "warning", "fails": "error"}


def comparison_lines(found: Comparison, top: int | None, output: str) -> Iterator[str]:
    """The whole comparison; of the lines that changed only the first `top`."""
    cells = cells_of(output)

    def wrapped(text: str) -> Iterator[str]:
        yield from pieces_of(printable(text), cells)

    base, *others = (run.name for run in found.runs)
    yield heading(printable(f"{', '.join(others)} compared with {base}"), output)
    if not isinstance(found.waterfall, MissingDataError):
        yield from wrapped(COMPARISONS["step_waterfall"].sentence(found.waterfall))
    for text in found.doubts.loc[found.doubts["severity"] == "doubt", "reason"].unique():
        yield from wrapped(f"Doubt: {text}.")
    yield from ("", f"{heading('Step time', output)}  (per step and rank; low and high: 95 % interval)")
    if isinstance(found.table, MissingDataError):
        yield from wrapped("By the host's clock: no run has device events, so there is no waterfall.")
        yield from frame_lines(_of_host(found), len(found.runs), cells, alike=True)
    else:
        yield from frame_lines(_steps(found.table), len(found.runs), cells, alike=True)
    if not isinstance(found.waterfall, MissingDataError):
        note = "parts add up to the change of the step; verdict: 99 %, all parts together"
        yield from ("", f"{heading('Why', output)}  ({note})")
        parts = _parts(found.waterfall)
        yield from frame_lines(parts, len(parts), cells, alike=True)
    title = _TITLES.get(found.by, f"{found.by.capitalize()}s")
    yield from ("", heading(title, output))
    yield from wrapped(COMPARISONS["diff"].sentence(found.lines))
    changed = _changed(found.lines)
    if len(changed):
        yield from frame_lines(changed, _LINES if top is None else top, cells, alike=True)
    if found.verdicts:
        yield from ("", heading("Limits", output))
    for verdict in found.verdicts:
        first, *rest = hanging(" " * 6, _in_words(verdict), cells)
        word = painted(f"{_WORDS[verdict.outcome]:<4}", _COLOURS[verdict.outcome], output)
        yield f"{word}  {first.lstrip()}"
        yield from rest


def _steps(table: pd.DataFrame) -> pd.DataFrame:
    frame = table[["run", "steps", "step_ns", "low_ns", "high_ns", "change_ns", "change_pct"]]
    return frame.assign(verdict=table["verdict"])


def _of_host(found: Comparison) -> pd.DataFrame:
    steps = found.measures[found.measures["measure"] == STEP_TIME]
    frame = steps[["run", "before_ns", "time_ns", "change_ns", "low_ns", "high_ns"]]
    return frame.assign(verdict=steps["verdict"])


def _parts(waterfall: pd.DataFrame) -> pd.DataFrame:
    """What takes time, before or after. Of two runs, the name of the second would say nothing new."""
    chart = COMPARISONS["step_waterfall"].chart
    labels = {series.column: series.label for series in chart.series} if isinstance(chart, Waterfall) else {}
    before = waterfall["time_ns"] - waterfall["change_ns"]
    shown: pd.DataFrame = waterfall.assign(
        part=waterfall["part"].map(labels),
        before_ns=before,
    )
    runs = waterfall["run"].unique()
    occurs = (before != 0) | (waterfall["time_ns"] != 0)
    shown = shown.loc[occurs & (waterfall["part"] != STEP) & (waterfall["run"] != runs[0])]
    columns = ["part", "before_ns", "time_ns", "change_ns", "low_ns", "high_ns", "verdict"]
    return shown.reindex(columns=columns if len(runs) == 2 else ["run", *columns])


def _changed(lines: pd.DataFrame) -> pd.DataFrame:
    """The lines that changed; where noise is unknown, also those whose time did."""
    if lines.empty:
        return lines
    runs, unknown = lines["run"].unique(), lines["low_ns"].isna()
    short = short_kernel_names([*lines["line"], *lines["moved_from"]])
    was = " (was " + lines["moved_from"].map(short) + ")"
    shown: pd.DataFrame = lines.assign(
        time_ns=lines["exclusive_ns"],
        line=lines["line"].map(short) + was.where(lines["moved_from"] != "", ""),
    )
    changed = (lines["change"] != "same") | unknown & (lines["change_ns"] != 0)
    shown = shown[changed & (lines["run"] != runs[0])]
    # Their intervals are in the other formats: on a terminal, the room is better used for the name.
    columns = ["change", "before_ns", "time_ns", "change_ns", "change_pct", "verdict", "line"]
    columns += ["kernels"] if (shown["kernels"] != "").any() else []
    return shown.reindex(columns=columns if len(runs) == 2 else ["run", *columns])


def _in_words(verdict: Verdict) -> str:
    changed, of_memory = verdict.changed, verdict.limit.of == "peak_memory"
    amount = (byte_size if of_memory else duration)(changed.change)
    relative = f"{signed(changed.pct, percent(changed.pct))}, " if changed.before else ""
    text = f"{verdict.run}: {verdict.limit.text}: {relative}{signed(changed.change, amount)}"
    if not verdict.noise_known:
        if verdict.outcome == "holds":
            return text
        return f"{text}; noise is unknown (no two steps to compare), so the change alone decides"
    text += f", 95 % interval {_signed_time(changed.low)} to {_signed_time(changed.high)}"
    if verdict.outcome != "within noise":
        return text
    certain = changed.low > 0 or changed.high < 0
    tiny = abs(changed.change) < LEAST_CHANGE * max(changed.before, changed.after)
    why = "less than one percent" if tiny else "inconclusive: zero is in the 99 % interval"
    return f"{text}; beyond the limit, but {why if certain else 'within noise'}"


def _signed_time(ns: float) -> str:
    return signed(ns, duration(ns))
