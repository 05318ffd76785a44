"""The checks of a comparison with one column per run, for display."""

from __future__ import annotations

import pandas as pd

_OTHERS = ("check", "severity", "reason")


def check_table(frame: pd.DataFrame) -> pd.DataFrame:
    """A `comparability` frame with one row per check.

    Columns: check, severity, for each run what was found in it (under the run's name), reason (str).
    """
    checks = frame.drop_duplicates("check")
    columns = {"check": checks["check"], "severity": checks["severity"]}
    for run in frame["run"].unique():
        name = f"run {run}" if run in _OTHERS else run
        columns[name] = frame.loc[frame["run"] == run, "value"]
    columns["reason"] = checks["reason"]
    return pd.DataFrame({name: column.to_numpy() for name, column in columns.items()})
