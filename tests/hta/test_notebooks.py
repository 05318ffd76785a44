"""What HTA's public notebooks import and call, with `hta` replaced by `hta_widgets.hta`, on real traces.

The notebooks lie in HolisticTraceAnalysis/examples. Their data are not all public: other traces stand in.
"""

import shutil

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from hta_widgets import hta
from hta_widgets.hta.analyzers.timeline import plot_timeline_gpu_kernels, plot_timeline_gpu_kernels_from_trace
from hta_widgets.hta.common import execution_trace
from hta_widgets.hta.common.timeline import (
    AnnotationStreamID,
    PlotFormat,
    Timeline,
    TimelinePlotSetting,
    align_module_with_kernels,
    get_fig_name_from_fig_title,
    get_fig_title_from_fig_name,
    plot_events_timeline,
    prepare_timeline_events,
)
from hta_widgets.hta.common.trace import Trace, TraceSymbolTable
from hta_widgets.hta.common.trace_call_graph import CallGraph
from hta_widgets.hta.common.trace_filter import Filter, GPUKernelFilter, IterationIndexFilter, NameFilter
from hta_widgets.hta.configs.config import HtaConfig, logger
from hta_widgets.hta.configs.parser_config import AVAILABLE_ARGS, ParserConfig
from hta_widgets.hta.memory_analysis import MemoryAnalysis
from hta_widgets.hta.trace_analysis import TimeSeriesTypes, TraceAnalysis
from hta_widgets.hta.trace_diff import DeviceType, LabeledTrace, TraceDiff
from hta_widgets.hta.utils.utils import flatten_column_names, shorten_name
from tests.support import shared_trace


@pytest.fixture
def shown(monkeypatch):
    """The figures that were shown."""
    figures = []
    monkeypatch.setattr(go.Figure, "show", lambda figure, *_, **__: figures.append(figure))
    return figures


@pytest.fixture
def parsed():
    trace = Trace(trace_dir=str(shared_trace("hta/trace_filter")))
    trace.parse_traces()
    return trace


def test_the_package_is_where_its_file_is():
    assert hta.__file__ and hta.__version__ == "0.6.1"


def test_plot_timeline(parsed, shown):
    logger.info("using traces")
    ranks = list(parsed.get_all_traces().keys())
    df = pd.concat(
        [parsed.get_trace(r) for r in ranks], axis=0, keys=ranks, names=["rank", "idx"]
    ).reset_index()
    table = parsed.symbol_table
    plot_timeline_gpu_kernels("one step", df, table, iterations=[551], duration_threshold=2000)
    s_map = pd.Series(table.get_sym_id_map())
    others = s_map[s_map.index.str.startswith("ncclKernel") | s_map.index.str.startswith("Mem")].to_numpy()
    compute = df.loc[~df["name"].isin(others)]
    plot_timeline_gpu_kernels(
        "compute", compute, table, iterations=[551], streams=[7], duration_threshold=2000
    )
    plot_timeline_gpu_kernels_from_trace("from a trace", parsed, ranks=[1])
    assert [figure.layout.title.text for figure in shown] == ["one step", "compute", "from a trace"]
    assert [figure.layout.height for figure in shown] == [440, 440, 320]
    drawn = {task for bars in shown[1].data for task in bars.y}
    assert drawn == {"rank 0 stream 7", "rank 1 stream 7"}
    with pytest.raises(ValueError, match="rank"):
        plot_timeline_gpu_kernels("no ranks", parsed.get_trace(0), table)


def test_timeline_demo(parsed, shown):
    parsed.decode_symbol_ids()
    CallGraph(parsed, ranks=[0, 1])
    df, table = parsed.get_trace(0), parsed.symbol_table
    Timeline(df, table).plot("a simple timeline")
    Timeline(df, table, filter_func=GPUKernelFilter()).plot("a timeline of GPU events")

    class MyKernelFilter(Filter):
        def __init__(self, name_pattern: str, iteration_index: int) -> None:
            self.name_pattern = name_pattern
            self.iteration_index = iteration_index

        def __call__(self, df: pd.DataFrame, symbol_table: TraceSymbolTable | None = None) -> pd.DataFrame:
            df = IterationIndexFilter(self.iteration_index)(df, symbol_table)
            df = GPUKernelFilter()(df, symbol_table)
            return NameFilter(self.name_pattern)(df, symbol_table)

    Timeline(df, table, MyKernelFilter(r"(.+embedding)|(^nccl)|(Memcpy)", iteration_index=0)).plot("mine")
    with pytest.warns(UserWarning, match=r"select none|no events|made ready"):
        Timeline(df, table, MyKernelFilter("^nccl", iteration_index=9)).plot("nothing")
    modules = ["## forward ##", "## backward ##", "## optimizer ##"]
    aligned = align_module_with_kernels(df, module_list=modules, sym_table=table)
    Timeline(aligned, table).plot("operator highlight")
    assert [figure.layout.title.text for figure in shown] == [
        "a simple timeline", "a timeline of GPU events", "mine", "operator highlight"
    ]  # fmt: skip
    annotations = aligned[aligned["stream"] == AnnotationStreamID]
    assert len(annotations) and set(annotations["s_name"]) <= set(modules)
    kernels = aligned[aligned["stream"] >= 0]
    assert annotations["ts"].min() >= kernels["ts"].min()
    assert annotations["end"].max() <= kernels["end"].max()


def test_trace_filter_demo(parsed):
    parsed.decode_symbol_ids()
    df = parsed.get_trace(0)
    selected = NameFilter("aten::.*mm")(df, parsed.symbol_table)
    assert len(selected) == 378
    shown_columns = ["iteration", "index", "ts", "dur", "stream", "s_cat", "s_name"]
    assert selected.head()[shown_columns].iloc[0].tolist() == [
        551, 13, 1682725898237042, 60.0, -1, "cpu_op", "aten::mm"
    ]  # fmt: skip


def test_customize_trace_parser(tmp_path):
    before = ParserConfig.get_default_cfg()
    try:
        config = ParserConfig.get_default_cfg()
        config.add_args([*ParserConfig.ARGS_INPUT_SHAPE, AVAILABLE_ARGS["sm::occupancy"]])
        ParserConfig.set_default_cfg(config)
        trace = Trace(trace_dir=str(shared_trace("hta/trace_filter")))
        trace.parse_traces(use_multiprocessing=False)
        frame = trace.get_trace(next(iter(trace.traces)))
        assert {"input_dims", "est_occupancy"} <= set(frame.columns)
    finally:
        ParserConfig.set_default_cfg(before)
    assert HtaConfig.get_test_data_path("h100").endswith("tests/data/h100")


def test_trace_diff_demo(shown):
    control = LabeledTrace(label="Control", trace_dir=str(shared_trace("hta/trace_diff/control")))
    test = LabeledTrace(label="Test", trace_dir=str(shared_trace("hta/trace_diff/test")))
    assert (control.ranks(), test.ranks()) == ([3], [1])
    assert control.iterations() == test.iterations() == [1009, 1010, 1011, 1012, 1013, 1014]
    methods = [name for name, member in vars(TraceDiff).items() if isinstance(member, classmethod)]
    assert methods == ["compare_traces", "ops_diff", "visualize_counts_diff", "visualize_duration_diff"]
    frame = TraceDiff.compare_traces(control, test, device_type=DeviceType.CPU)
    # As HTA 0.6 prints (the notebook's output is an older one's).
    assert len(frame) == 231
    row = frame.loc["## all2all_data:lengths ##"]
    assert row.tolist() == [2, 308.0, 2, 222.0, 0, -86.0, "="]
    assert frame.loc["CompiledFunction", ["Control_counts", "Test_counts"]].tolist() == [0, 1]
    most = frame.sort_values(by="diff_duration", ascending=False).head(10)
    TraceDiff.visualize_counts_diff(most)
    TraceDiff.visualize_duration_diff(most)
    assert len(shown) == 2
    assert shorten_name("void f<int>(int)") == "f"
    levels = pd.DataFrame(np.zeros((1, 2)), columns=pd.MultiIndex.from_tuples([("a", "sum"), ("b", "")]))
    flatten_column_names(levels)
    assert list(levels.columns) == ["a_sum", "b"]


def test_execution_trace_demo(tmp_path):
    folder = shared_trace("hta/execution_trace")
    analyzer = TraceAnalysis(trace_dir=str(folder))
    recorded = execution_trace.load_execution_trace(str(next(folder.glob("*_et.json.gz"))))
    execution_trace.correlate_execution_trace(analyzer.t, 0, recorded)
    frame = analyzer.t.get_trace(0)
    assert frame["et_node"].notna().any()
    for column in ("op_schema", "input_shapes", "input_types", "output_shapes", "output_types"):
        execution_trace.add_et_column(frame, recorded, column)
        assert column in frame


def test_analyses_of_several_ranks(shown):
    analyzer = TraceAnalysis(trace_dir=str(shared_trace("hta/trace_filter")))
    assert analyzer.get_profiler_steps() == [551]
    assert len(analyzer.get_temporal_breakdown(visualize=False)) == 2
    assert len(analyzer.get_comm_comp_overlap(visualize=False)) == 2
    kinds, names = analyzer.get_gpu_kernel_breakdown(visualize=False)
    assert len(kinds) and len(names)
    idle, _ = analyzer.get_idle_time_breakdown(ranks=[0, 1], visualize=False)
    assert set(idle["rank"]) == {0, 1}
    assert set(analyzer.get_cuda_kernel_launch_stats(ranks=[0, 1], visualize=False)) == {0, 1}
    queue = analyzer.get_queue_length_time_series(ranks=[0])
    assert len(queue[0]) and len(analyzer.get_queue_length_summary(ranks=[0]))
    assert len(analyzer.get_memory_bw_summary(ranks=[0]))
    assert len(analyzer.get_memory_bw_time_series(ranks=[0])[0])
    assert isinstance(analyzer.get_potential_stragglers(num_candidates=1), list)
    assert shown == []


def test_counters_in_a_trace(tmp_path):
    source = shared_trace("hta/amd_trace")
    shutil.copytree(source, tmp_path / "job")
    analyzer = TraceAnalysis(trace_dir=str(tmp_path / "job"))
    analyzer.generate_trace_with_counters(time_series=TimeSeriesTypes.QUEUE_LENGTH)
    assert len(list((tmp_path / "job").glob("*_with_counters*"))) == 1


def test_cupti_flops_analysis():
    analyzer = TraceAnalysis(trace_dir=str(shared_trace("hta/cupti_profiler")))
    kernels = analyzer.get_cupti_counter_data_with_operators(ranks=[0])[0]
    assert len(kernels) == 77 and {"top_level_op", "bottom_level_op", "op_stack"} <= set(kernels.columns)


def test_critical_path_analysis(tmp_path):
    analyzer = TraceAnalysis(trace_dir=str(shared_trace("hta/critical_path/simple_add")))
    annotation = "[param|pytorch.model.alex_net|0|0|0|measure|forward]"
    graph, found = analyzer.critical_path_analysis(rank=0, annotation=annotation, instance_id=1)
    assert found
    written = analyzer.overlay_critical_path_analysis(0, graph, output_dir=str(tmp_path))
    assert str(tmp_path) in written


def test_memory_analysis_demo(shown):
    source = shared_trace("hta/memory_analysis/memory_timeline.raw.gz")
    MemoryAnalysis(path=str(source)).plot_memory_timeline()


# -- pictures of timelines, in detail --------------------------------------------------------------------


def events():
    table = TraceSymbolTable(
        ["void f<int>(int)", "## step ##", "autograd::engine::evaluate_function: g(x)", "op"]
    )
    frame = pd.DataFrame(
        {
            "name": [0, 1, 2, 3],
            "cat": 3,
            "ts": [100.0, 110.0, 120.0, 5000.0],
            "dur": [5.0, 2000.0, 1.0, 1.0],
            "stream": [7, AnnotationStreamID, -1, -1],
            "depth": [0, 0, 0, 3],
            "rank": [0, 0, 0, 1],
        }
    )
    return frame, table


def test_rows_and_bars():
    frame, table = events()
    ready = prepare_timeline_events(frame, symbol_table=table)
    assert ready["task"].tolist() == [
        "rank 000 cpu level 000", "rank 000 gpu annotate", "rank 000 gpu stream 007", "rank 001 cpu level 003"
    ]  # fmt: skip
    assert ready["name"].tolist() == ["autograd::g", "## step ##", "f<int>", "op"]
    assert ready["calibrated_start_global"].tolist() == [20.0, 10.0, 0.0, 4900.0]
    assert ready["calibrated_end_global"].tolist() == [1020.0, 2010.0, 1000.0, 5900.0]


def test_settings(tmp_path):
    frame, table = events()
    setting = TimelinePlotSetting(
        amplify_short_events=False, use_global_time=True, plot_format=PlotFormat.HTML, compress_threads=False
    )
    ready = prepare_timeline_events(frame.assign(tid=9), setting, table)
    assert ready["calibrated_start_global"].min() == pd.Timestamp(100, unit="us")
    assert ready["task"].iloc[0] == "rank 000 gpu annotate"
    assert "rank 000 tid 9 cpu level 000" in set(ready["task"])
    page = plot_events_timeline("t", ready, setting, output_image_path=str(tmp_path / "t.html"))
    assert "<html" in page and (tmp_path / "t.html").stat().st_size > 1000
    assert setting == TimelinePlotSetting(
        amplify_short_events=False, use_global_time=True, plot_format=PlotFormat.HTML, compress_threads=False
    )


def test_bars_are_as_long_as_the_events(shown):
    frame, table = events()
    Timeline(frame, table).plot("t")
    lengths = {bars.name: list(bars.x) for bars in shown[0].data}
    assert lengths == {"f&lt;int>": [1000], "## step ##": [2000], "autograd::g": [1000], "op": [1000]}
    assert shown[0].layout.height == 50 + 80 * 4


def test_nothing_to_draw():
    frame, table = events()
    with pytest.warns(UserWarning, match="no events"):
        assert prepare_timeline_events(frame.head(0)).empty
    with pytest.warns(UserWarning, match="'dur'"):
        assert prepare_timeline_events(frame.drop(columns="dur")).empty
    with pytest.warns(UserWarning, match="made ready"):
        assert plot_events_timeline("t", frame) is None
    with pytest.raises(ValueError, match="kernel_span"):
        align_module_with_kernels(frame, ["x"], table)


def test_names_of_figures():
    assert get_fig_title_from_fig_name("kernel_times-of step") == "Kernel Times Of Step"
    assert get_fig_name_from_fig_title("Kernel Times") == "kernel_times"
