"""HTA's switches in the environment, read once when they are first asked for. Only ``1`` switches one on."""

from __future__ import annotations

import os
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


class HTAEnvOptions:
    """The switches of this process. Made by `HTAEnvOptions.instance`."""

    def __init__(self) -> None:
        self._on = {name: os.environ.get(name, "0") == "1" for name in VARIABLES}

    @staticmethod
    @cache
    def instance() -> HTAEnvOptions:
        return HTAEnvOptions()

    def disable_ns_rounding(self) -> bool:
        """Times are never rounded here, whatever this says."""
        return self._on[HTA_DISABLE_NS_ROUNDING_ENV]

    def set_disable_ns_rounding(self, value: bool) -> None:
        self._on[HTA_DISABLE_NS_ROUNDING_ENV] = value

    def disable_call_graph_depth(self) -> bool:
        return self._on[HTA_DISABLE_CG_DEPTH_ENV]

    def set_disable_call_graph_depth(self, value: bool) -> None:
        self._on[HTA_DISABLE_CG_DEPTH_ENV] = value

    def critical_path_add_zero_weight_launch_edges(self) -> bool:
        return self._on[CP_LAUNCH_EDGE_ENV]

    def set_critical_path_add_zero_weight_launch_edges(self, value: bool) -> None:
        self._on[CP_LAUNCH_EDGE_ENV] = value

    def critical_path_show_zero_weight_launch_edges(self) -> bool:
        return self._on[CP_LAUNCH_EDGE_SHOW_ENV]

    def set_critical_path_show_zero_weight_launch_edges(self, value: bool) -> None:
        self._on[CP_LAUNCH_EDGE_SHOW_ENV] = value

    def critical_path_strict_negative_weight_check(self) -> bool:
        return self._on[CP_STRICT_NEG_WEIGHT_CHECK_ENV]

    def set_critical_path_strict_negative_weight_check(self, value: bool) -> None:
        self._on[CP_STRICT_NEG_WEIGHT_CHECK_ENV] = value

    def get_options_str(self) -> str:
        """All switches, one per line."""
        return "\n".join(f"{name}={int(on)}" for name, on in self._on.items())


def disable_ns_rounding() -> bool:
    return HTAEnvOptions.instance().disable_ns_rounding()


def disable_call_graph_depth() -> bool:
    return HTAEnvOptions.instance().disable_call_graph_depth()


def critical_path_add_zero_weight_launch_edges() -> bool:
    return HTAEnvOptions.instance().critical_path_add_zero_weight_launch_edges()


def critical_path_show_zero_weight_launch_edges() -> bool:
    return HTAEnvOptions.instance().critical_path_show_zero_weight_launch_edges()


def critical_path_strict_negative_weight_check() -> bool:
    return HTAEnvOptions.instance().critical_path_strict_negative_weight_check()


def get_options() -> str:
    return HTAEnvOptions.instance().get_options_str()
