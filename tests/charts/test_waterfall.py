"""The bars of a waterfall against the table that they are drawn from."""

from hta_widgets import examples
from hta_widgets.analysis import COMPARISONS
from hta_widgets.analysis.compare.waterfall import step_waterfall
from hta_widgets.charts.spec import Waterfall
from hta_widgets.charts.waterfall_bars import waterfall_bars


def test_a_bar_knows_both_times_and_their_difference() -> None:
    runs = {name: examples.load(name) for name in ("gpt2_baseline", "gpt2_ddp")}
    frame = step_waterfall(runs)
    chart = COMPARISONS["step_waterfall"].chart
    assert isinstance(chart, Waterfall)
    bars, names = waterfall_bars(chart, frame)
    assert names == ["gpt2_ddp"]
    first = frame[frame["run"] == "gpt2_baseline"].set_index(chart.part)[chart.time]
    second = frame[frame["run"] == "gpt2_ddp"].set_index(chart.part)[chart.time]
    labels = {part.label: part.column for part in chart.series} | {chart.whole_label: chart.whole}
    assert len(bars) > 2
    for bar in bars.to_dict("records"):
        part = labels[bar["label"]]
        assert (bar["before"], bar["after"]) == (first[part], second[part])
        assert bar["value"] == bar["after"] - bar["before"] == bar["end"] - bar["start"]


def test_the_bars_of_each_run_join_and_end_with_its_own_whole() -> None:
    runs = {name: examples.load(name) for name in ("gpt2_baseline", "gpt2_ddp", "gpt2_fsdp_full_shard")}
    chart = COMPARISONS["step_waterfall"].chart
    assert isinstance(chart, Waterfall)
    bars, names = waterfall_bars(chart, step_waterfall(runs))
    assert names == ["gpt2_ddp", "gpt2_fsdp_full_shard"]
    for _, of_run in bars.groupby("run"):
        parts, whole = of_run[of_run["whole"] == 0], of_run[of_run["whole"] == 1].iloc[0]
        assert parts["start"].tolist() == [0, *parts["end"].tolist()[:-1]]
        assert (whole["start"], whole["end"]) == (0, parts["end"].iloc[-1])
