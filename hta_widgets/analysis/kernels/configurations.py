"""What makes launches of a kernel equal.

A kernel may run as many blocks as the device has multiprocessors, whatever it computes. The inputs of its
operator then tell launches apart that only look equal.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from hta_widgets.analysis.operators.calls import launched_inputs
from hta_widgets.arrays import Int64
from hta_widgets.trace.ordering import first_of_each, numbered
from hta_widgets.trace.rank_trace import RankTrace


class Configuration(NamedTuple):
    """How a kernel is launched, as texts; "" where it is not recorded."""

    name: str
    grid: str
    block: str
    inputs: str  # shapes of the inputs of the operator that launches it


def configurations(rank_trace: RankTrace, rows: Int64) -> tuple[list[Configuration], Int64]:
    """The configurations of rows of device work, ascending, and the number of each row's."""
    columns = (
        (rank_trace.name[rows], rank_trace.names),
        (rank_trace.argument_codes("grid")[rows], rank_trace.table.dictionary("grid")),
        (rank_trace.argument_codes("block")[rows], rank_trace.table.dictionary("block")),
        (launched_inputs(rank_trace, rows), rank_trace.table.dictionary("input_dims")),
    )
    code = numbered(*(codes for codes, _ in columns))
    first = first_of_each(code)
    parts = [[[*texts, ""][one] for one in codes[first].tolist()] for codes, texts in columns]
    own = [Configuration(*each) for each in zip(*parts, strict=True)]
    known = sorted(set(own))
    place = {each: at for at, each in enumerate(known)}
    return known, np.array([place[each] for each in own], np.int64)[code]
