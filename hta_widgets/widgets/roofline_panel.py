"""The panel of the roofline: beside the answer, the peaks of the devices, which can be changed there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import traitlets as t

from hta_widgets.analysis.kernels.stated_peaks import checked_peaks, device_name, stated_peaks
from hta_widgets.analysis.kernels.units import UNITS
from hta_widgets.trace.model import Trace
from hta_widgets.trace.scope import Scope
from hta_widgets.widgets.breakdown_panel import BreakdownPanel
from hta_widgets.widgets.panel import PanelState

Device = dict[str, Any]


class PeaksByDevice(t.TraitType[dict[str, dict[str, Any]], Any]):
    """Peaks that are stated of devices, as `roofline` takes them; what a device cannot have is refused."""

    info_text = "peaks by device, such as {'A100 40GB': {'memory_gb_s': 1400}}"

    def __init__(self, **metadata: Any) -> None:
        super().__init__({}, **metadata)

    def validate(self, obj: t.HasTraits, value: Any) -> dict[str, dict[str, Any]]:
        try:
            return checked_peaks(value)
        except ValueError as error:
            raise t.TraitError(f"{self.name}: {error}") from None


@dataclass(frozen=True)
class _Shown:
    answer: PanelState
    devices: list[Device]


class RooflinePanel(BreakdownPanel):
    """`roofline` of the selection, with peaks of one's own.

    Args:
        trace: an open `Trace`, or anything `Trace.open` takes.
        kind: "roofline".
        peaks: peaks of devices in place of their datasheets', as `roofline` takes them; can be changed later.
        further: as for `BreakdownPanel`.

    Raises:
        traitlets.TraitError: `peaks` are none that a device can have.
    """

    _depends: ClassVar[tuple[str, ...]] = (*BreakdownPanel._depends, "peaks")
    _from_browser: ClassVar[Sequence[str]] = ("peaks",)

    peaks = PeaksByDevice(help="peaks of devices in place of their datasheets'").tag(sync=True)
    devices: t.List[Device] = t.List(
        help="[{name, source, achievable_source, memory_gb_s, units: [{unit, peak, achievable}]}]"
    ).tag(sync=True)

    def __init__(self, trace: Any, kind: str = "roofline", *, peaks: Any = None, **further: Any) -> None:
        self._stated = checked_peaks(peaks or {})
        super().__init__(trace, kind, **further)

    def _describe(self, *args: Any) -> dict[str, Any]:
        return {**super()._describe(*args), "peaks": self._stated}

    def _given(self) -> dict[str, Any]:
        return super()._given() | ({"peaks": self.peaks} if self.peaks else {})

    def _compute(self, scope: Scope) -> Any:
        devices = _devices(self.trace, scope)
        return _Shown(super()._compute(scope), devices)

    def _show(self, shown: Any) -> None:
        self.devices = shown.devices
        super()._show(shown.answer)


def _devices(trace: Trace, scope: Scope) -> list[Device]:
    """What is known of each device that the ranks used, whatever is stated of it."""
    found: dict[str, Device] = {}
    for rank in trace.ranks_of(scope):
        rank_trace = trace.rank(rank)
        name = device_name(rank_trace)
        if name in found or rank_trace.device_span is None:
            continue
        peaks = stated_peaks(rank_trace)
        found[name] = {
            "name": name,
            "source": peaks.source if peaks else "",
            "achievable_source": peaks.achievable_source if peaks else "",
            "memory_gb_s": peaks.memory_gb_s if peaks else None,
            "units": [
                {
                    "unit": unit,
                    "peak": peaks.tflops.get(unit) if peaks else None,
                    "achievable": peaks.achievable.get(unit) if peaks else None,
                }
                for unit in UNITS
            ],
        }
    return list(found.values())
