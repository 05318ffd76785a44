"""Where the call that an event belongs to lies under the roofs of its device."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hta_widgets.analysis.inspect.record import Roof
from hta_widgets.analysis.inspect.refs import ref
from hta_widgets.analysis.kernels.peaks import peaks_of_rank
from hta_widgets.analysis.kernels.stated_peaks import device_name
from hta_widgets.analysis.kernels.units import UNITS
from hta_widgets.analysis.operators.calls import operator_calls
from hta_widgets.analysis.operators.costs import SUMS, operator_costs
from hta_widgets.analysis.operators.roofs import call_units
from hta_widgets.analysis.operators.table import figures
from hta_widgets.trace.rank_trace import RankTrace


def roof_of(rank_trace: RankTrace, row: int) -> Roof | str:
    """The roofline position of the innermost operator around a row with a formula, or why there is none."""
    calls = operator_calls(rank_trace)
    call = int(calls.around[row])
    if call < 0:
        return "no recorded operator ran it or launched it"
    costs, innermost = operator_costs(rank_trace), call
    while call >= 0 and not costs.has_formula[call]:
        call = int(calls.parent[call])
    if call < 0:
        name = rank_trace.names[rank_trace.name[calls.rows[innermost]]]
        if costs.named[innermost]:
            return (
                f"what the inputs of {name} were is not recorded, or not as its formula expects: "
                "record with torch.profiler.profile(record_shapes=True)"
            )
        return f"no formula describes what {name}, or an operator around it, computes"
    if not calls.device_ns[call]:
        return "the operator launched no device work"
    of_call = costs.of(np.array([call]))
    sums = dict(zip(SUMS, of_call[0].tolist(), strict=True))
    shown = {name: np.asarray(column)[0] for name, column in figures(of_call).items()}
    unit, peaks = int(call_units(rank_trace)[call]), peaks_of_rank(rank_trace)
    return Roof(
        operator=ref(rank_trace, int(calls.rows[call])),
        kernels=int(_works_for(calls.parent, calls.owner, call).sum()),
        device_ns=int(calls.device_ns[call]),
        flops=_known(shown["flops"]),
        bytes=_known(shown["bytes"]),
        bounded=bool(shown["bounded"]),
        tflops_s=_known(shown["tflops_s"]),
        gb_s=_known(shown["gb_s"]),
        flops_per_byte=_known(shown["flops_per_byte"]),
        bound=str(shown["bound"]) if sums["roofed_ns"] else None,
        efficiency_pct=_known(shown["efficiency_pct"]),
        unit=UNITS[unit] if unit >= 0 else None,
        peak_tflops_s=sums["timed_flops"] / sums["compute_roof_ns"] / 1e3
        if sums["compute_roof_ns"]
        else None,
        peak_gb_s=peaks.memory_gb_s if peaks else None,
        device=device_name(rank_trace) or None,
        source=peaks.source if peaks else None,
    )


def _works_for(
    parent: npt.NDArray[np.int64], owner: npt.NDArray[np.int64], call: int
) -> npt.NDArray[np.bool_]:
    """Which device work a call, or one in it, launched; callers come before what they call."""
    at = owner.copy()
    found: npt.NDArray[np.bool_] = owner == call
    while (climbing := ~found & (at > call)).any():
        at[climbing] = parent[at[climbing]]
        found |= at == call
    return found


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
