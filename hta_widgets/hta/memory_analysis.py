"""HTA's `MemoryAnalysis`: the file of `export_memory_timeline` as numbers and as a picture."""

from __future__ import annotations

from enum import Enum
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pandas as pd
import plotly.graph_objects as go
from plotly.colors import qualitative

from hta_widgets.analysis.memory.categories import memory_categories
from hta_widgets.errors import HtaWidgetsError
from hta_widgets.hta.methods.conventions import show


class Category(Enum):
    """What PyTorch's profiler takes tensors for; the file numbers them in another order (`CATEGORIES`)."""

    INPUT = 1
    TEMPORARY = 2
    ACTIVATION = 3
    GRADIENT = 4
    AUTOGRAD_DETAIL = 5
    PARAMETER = 6
    OPTIMIZER_STATE = 7


class MemoryAnalysis:
    """Memory by category over time.

    Args:
        path: a file of `torch.profiler.profile(profile_memory=True, ...).export_memory_timeline(path)`,
            gzip or not.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = path

    def _process_raw_events(self) -> tuple[list[int], list[list[int]]]:
        """(times in ns, bytes of each category at each time), as HTA returns them.

        Raises:
            TraceNotFoundError, TraceFormatError: as `memory_categories`.
        """
        frame = memory_categories(self.path)
        return frame["time_ns"].tolist(), frame.drop(columns="time_ns").to_numpy().tolist()

    def plot_memory_timeline(self, save_graph: bool = False) -> None:
        """Show the memory of each category, one on the other.

        Args:
            save_graph: write `images/memory_plot.png` in the working folder instead of showing it.

        Raises:
            HtaWidgetsError: the picture should be saved and the package kaleido is not installed.
        """
        figure = _figure(memory_categories(self.path))
        if not save_graph:
            show([figure])
            return
        if find_spec("kaleido") is None:
            raise HtaWidgetsError("saving a picture needs the package kaleido: pip install kaleido")
        folder = Path("images")
        folder.mkdir(exist_ok=True)
        figure.write_image(folder / "memory_plot.png")


def _figure(frame: pd.DataFrame) -> go.Figure:
    """Filled lines of an `analysis.memory_categories` frame, one category on the other."""
    names = [name for name in frame if name != "time_ns"]
    time = (frame["time_ns"] - frame["time_ns"].min()) / 1e6
    stacked = np.cumsum(frame[names].to_numpy(), axis=1) / 1024**3
    figure = go.Figure()
    for at, (name, fill) in enumerate(zip(names, qualitative.Pastel, strict=False)):
        figure.add_scatter(
            x=time,
            y=stacked[:, at],
            mode="lines",
            fill="tonexty",
            fillcolor=fill,
            marker={"color": fill},
            name=str(name),
            showlegend=True,
        )
    figure.update_xaxes(title="Time (ms)")
    figure.update_yaxes(title="Memory (GB)")
    return figure.update_layout(title_text="Memory timeline", title_x=0.5, width=1200, height=800)
