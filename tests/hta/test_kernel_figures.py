"""What HTA's figures of kernels draw, of tables by hand."""

import pandas as pd

from hta_widgets.hta.methods.kernel_figures import bars_by_rank, pie_of_types, pies_by_rank


def test_a_pie_holds_the_types_that_take_time():
    types = pd.DataFrame({"kernel_type": ["a", "b", "c"], "percentage": [99.5, 0.5, 0.0]})
    (pie,) = pie_of_types(types).data
    assert (list(pie.labels), list(pie.values)) == (["a", "b"], [99.5, 0.5])


def test_each_rank_has_a_pie_of_its_own_and_names_stay_text():
    frame = pd.DataFrame({"rank": [3, 5, 3], "name": ["a<b>", "c", "d"], "sum (us)": [1.0, 2.0, 3.0]})
    first, second = pies_by_rank(frame, [3, 5], "t").data
    assert (list(first.labels), list(first.values)) == (["a&lt;b&gt;", "d"], [1.0, 3.0])
    assert (first.title.text, second.title.text, list(second.values)) == ("Rank 3", "Rank 5", [2.0])


def test_bars_reach_from_the_least_to_the_most():
    frame = pd.DataFrame(
        {
            "name": ["k", "others", "k"], "rank": [0, 0, 1], "mean (us)": [5.0, 9.0, 6.0],
            "min (us)": [2.0, 9.0, 6.0], "max (us)": [9.0, 9.0, 7.0],
        }
    )  # fmt: skip
    (figure,) = bars_by_rank(frame, "Mean of ")
    (bars,) = figure.data
    assert figure.layout.title.text == "Mean of k" and list(bars.y) == [5.0, 6.0]
    assert list(bars.error_y.array) == [4.0, 1.0] and list(bars.error_y.arrayminus) == [3.0, 0.0]
