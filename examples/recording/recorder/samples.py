"""What a trace says about launches, gaps, durations and nesting, one value per row, and its fields."""

from __future__ import annotations

from collections import Counter

import pandas as pd

from hta_widgets import Trace, analysis
from hta_widgets.errors import MissingDataError
from hta_widgets.trace.reader.raw import RawTrace


def samples(trace: Trace) -> tuple[pd.DataFrame, dict[str, str]]:
    """The samples that `calibration.compare` compares.

    Returns:
        One row per sample: quantity, unit, group (str), value (int64); and for each quantity that the trace
        cannot tell, why.
    """
    events = trace.events()
    parts = [_durations(events), _depths(events), _events_per_step(events)]
    missing: dict[str, str] = {}
    try:
        launches = analysis.launch_stats(trace)
        calls = launches.drop_duplicates(["rank", "launch_id"])
        parts.append(_rows("launch call", "ns", calls["api"], calls["cpu_dur_ns"]))
        parts.append(_rows("launch latency, queue excluded", "ns", launches["api"], launches["overhead_ns"]))
    except MissingDataError as error:
        missing["launches"] = str(error)
    try:
        gaps = analysis.idle_gaps(trace)
        parts.append(_rows("idle gap by cause", "ns", gaps["cause"], gaps["dur_ns"]))
    except MissingDataError as error:
        missing["gaps"] = str(error)
    return pd.concat(parts, ignore_index=True), missing


def fields(trace: Trace) -> pd.Series:
    """How many of the events of each category have each argument.

    Returns:
        float64 shares from 0 to 1, indexed by category and field. Category ``(file)`` stands for the
        top-level keys: the share of files that have them.
    """
    seen: Counter[str] = Counter()
    found: Counter[tuple[str, str]] = Counter()
    for rank in trace.ranks:
        raw = RawTrace.read(trace.rank(rank).path)
        for position in range(raw.n):
            event = raw.event(position)
            category = str(event.get("cat", event.get("ph", "")))
            arguments = event.get("args")
            seen[category] += 1
            found.update((category, str(key)) for key in (arguments if isinstance(arguments, dict) else ()))
        seen["(file)"] += 1
        found.update(("(file)", key) for key in trace.metadata(rank))
    shares = {key: count / seen[key[0]] for key, count in found.items()}
    names = pd.MultiIndex.from_tuples(list(shares), names=["category", "field"])
    by_name = pd.Series([float(share) for share in shares.values()], index=names)
    return by_name.sort_index()


def _durations(events: pd.DataFrame) -> pd.DataFrame:
    return _rows("duration by class", "ns", events["event_class"], events["dur_ns"])


def _depths(events: pd.DataFrame) -> pd.DataFrame:
    host = events[events["depth"].notna()]
    return _rows("nesting depth by class", "", host["event_class"], host["depth"])


def _events_per_step(events: pd.DataFrame) -> pd.DataFrame:
    inside = events[events["iteration"].notna()]
    counts = inside.groupby(["rank", "iteration", "event_class"], observed=True).size().reset_index(name="n")
    return _rows("events per step by class", "", counts["event_class"], counts["n"])


def _rows(quantity: str, unit: str, group: pd.Series, value: pd.Series) -> pd.DataFrame:
    columns = {"group": group.astype("str"), "value": value.astype("int64")}
    return pd.DataFrame(columns).assign(quantity=quantity, unit=unit)
