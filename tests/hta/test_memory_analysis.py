"""HTA's `MemoryAnalysis`."""

import plotly.graph_objects as go
import pytest

from hta_widgets.errors import HtaWidgetsError, TraceNotFoundError
from hta_widgets.hta import memory_analysis
from hta_widgets.hta.memory_analysis import Category, MemoryAnalysis
from tests.support import shared_trace


@pytest.fixture
def analysis() -> MemoryAnalysis:
    return MemoryAnalysis(str(shared_trace("hta/memory_analysis/memory_timeline.raw.gz")))


def test_times_and_sizes_are_those_of_hta(analysis):
    times, sizes = analysis._process_raw_events()
    assert len(times) == len(sizes) == 7721
    assert all(len(row) == 8 for row in sizes)
    assert sizes[744] == [102440608, 102228128, 19395584, 0, 2618160128, 58417152, 41811968, 25494440]
    assert times[:2] == [1696966047096061874] * 2


def test_categories_are_those_of_hta():
    assert [category.name for category in Category] == [
        "INPUT", "TEMPORARY", "ACTIVATION", "GRADIENT", "AUTOGRAD_DETAIL", "PARAMETER", "OPTIMIZER_STATE"
    ]  # fmt: skip
    assert [category.value for category in Category] == list(range(1, 8))


def test_the_picture_is_that_of_hta(analysis, monkeypatch):
    shown: list[go.Figure] = []
    monkeypatch.setattr(memory_analysis, "show", shown.extend)
    analysis.plot_memory_timeline()
    (figure,) = shown
    assert figure.layout.title.text == "Memory timeline"
    assert (figure.layout.width, figure.layout.height) == (1200, 800)
    assert (figure.layout.xaxis.title.text, figure.layout.yaxis.title.text) == ("Time (ms)", "Memory (GB)")
    assert [line.name for line in figure.data][:2] == ["Parameter", "Optimizer state"]
    assert len(figure.data) == 8
    assert {line.fill for line in figure.data} == {"tonexty"}
    assert min(figure.data[0].x) == 0
    assert max(figure.data[-1].y) == 3082832104 / 1024**3


def test_saving_without_kaleido_says_what_to_install(analysis, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory_analysis, "find_spec", lambda name: None)
    with pytest.raises(HtaWidgetsError, match="kaleido"):
        analysis.plot_memory_timeline(save_graph=True)
    assert not (tmp_path / "images").exists()


def test_saving_writes_the_picture(analysis, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory_analysis, "find_spec", lambda name: object())
    written = []
    monkeypatch.setattr(go.Figure, "write_image", lambda figure, path: written.append(str(path)))
    analysis.plot_memory_timeline(save_graph=True)
    assert written == ["images/memory_plot.png"]
    assert (tmp_path / "images").is_dir()


def test_a_missing_file_is_reported():
    with pytest.raises(TraceNotFoundError):
        MemoryAnalysis("/nowhere/x.gz")._process_raw_events()
