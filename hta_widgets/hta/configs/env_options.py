"""HTA's switches in the environment, read once when they are first asked for. Only ``1`` switches one on."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

HTA_DISABLE_NS_ROUNDING_ENV = "HTA_DISABLE_NS_ROUNDING"
HTA_DISABLE_CG_DEPTH_ENV = "HTA_DISABLE_CG_DEPTH"
CP_LAUNCH_EDGE_ENV = "CRITICAL_PATH_ADD_ZERO_WEIGHT_LAUNCH_EDGE"
CP_LAUNCH_EDGE_SHOW_ENV = "CRITICAL_PATH_SHOW_ZERO_WEIGHT_LAUNCH_EDGE"
CP_STRICT_NEG_WEIGHT_CHECK_ENV = "CRITICAL_PATH_STRICT_NEGATIVE_WEIGHT_CHECKS"

VARIABLES = (
    HTA_DISABLE_NS_ROUNDING_ENV,
    HTA_DISABLE_CG_DEPTH_ENV,
    CP_LAUNCH_EDGE_ENV,
    CP_LAUNCH_EDGE_SHOW_ENV,
    CP_STRICT_NEG_WEIGHT_CHECK_ENV,
)


def _switch(name: str) -> tuple[Callable[[HTAEnvOptions], bool], Callable[[HTAEnvOptions, bool], None]]:
    """Whether a switch is on, and what turns it."""

    def is_on(self: HTAEnvOptions) -> bool:
        return self._on[name]

    def turn(self: HTAEnvOptions, value: bool) -> None:
        self._on[name] = value

    return is_on, turn


class HTAEnvOptions:
    """The switches of this process. Made by `HTAEnvOptions.instance`. Times are never rounded, whatever
    `disable_ns_rounding` says.
    """

    def __init__(self) -> None:
        self._on = {name: os.environ.get(name, "0") == "1" for name in VARIABLES}

    @staticmethod
    @cache
    def instance() -> HTAEnvOptions:
        return HTAEnvOptions()

    disable_ns_rounding, set_disable_ns_rounding = _switch(HTA_DISABLE_NS_ROUNDING_ENV)
    disable_call_graph_depth, set_disable_call_graph_depth = _switch(HTA_DISABLE_CG_DEPTH_ENV)
    critical_path_add_zero_weight_launch_edges, set_critical_path_add_zero_weight_launch_edges = _switch(
        CP_LAUNCH_EDGE_ENV
    )
    critical_path_show_zero_weight_launch_edges, set_critical_path_show_zero_weight_launch_edges = _switch(
        CP_LAUNCH_EDGE_SHOW_ENV
    )
    critical_path_strict_negative_weight_check, set_critical_path_strict_negative_weight_check = _switch(
        CP_STRICT_NEG_WEIGHT_CHECK_ENV
    )

    def get_options_str(self) -> str:
        """All switches, one per line."""
        return "\n".join(f"{name}={int(on)}" for name, on in self._on.items())


def _of_process(name: str) -> Callable[[], bool]:
    return lambda: HTAEnvOptions.instance()._on[name]


disable_ns_rounding = _of_process(HTA_DISABLE_NS_ROUNDING_ENV)
disable_call_graph_depth = _of_process(HTA_DISABLE_CG_DEPTH_ENV)
critical_path_add_zero_weight_launch_edges = _of_process(CP_LAUNCH_EDGE_ENV)
critical_path_show_zero_weight_launch_edges = _of_process(CP_LAUNCH_EDGE_SHOW_ENV)
critical_path_strict_negative_weight_check = _of_process(CP_STRICT_NEG_WEIGHT_CHECK_ENV)


def get_options() -> str:
    return HTAEnvOptions.instance().get_options_str()
