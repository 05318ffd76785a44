"""The recorded inputs of operators, one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.operators.inputs import Inputs, parse_shapes, parse_types, parse_values

if TYPE_CHECKING:
    from hta_widgets.trace.rank_trace import RankTrace

__all__ = ["RecordedInputs", "recorded_inputs"]


class RecordedInputs:
    """What was passed to the operators of a rank, as far as it was recorded.

    Attributes:
        codes: int32 for each row of the rank, -1 where absent: the shapes, the types, the values.
    """

    def __init__(self, rank_trace: RankTrace) -> None:
        self._names, self._name = rank_trace.names, rank_trace.name
        columns = ("input_dims", "input_type", "concrete_inputs")
        self.codes = [rank_trace.argument_codes(column) for column in columns]
        self._texts = [rank_trace.table.dictionary(column) for column in columns]

    def of(self, row: int) -> Inputs:
        """The inputs of the operator of a row."""
        dims, types, values = (
            texts[codes[row]] if codes[row] >= 0 else ""
            for codes, texts in zip(self.codes, self._texts, strict=True)
        )
        kinds = parse_types(types)
        return Inputs(self._names[self._name[row]], parse_shapes(dims, kinds), kinds, parse_values(values))


recorded_inputs = memoize_per_rank()(RecordedInputs)
