"""HTA's `hta.configs.event_args_yaml_parser`: the catalogue of event arguments and its groups.

HTA keeps the catalogue as YAML text, we as Python (`default_event_args`): nothing is parsed here.
"""

from __future__ import annotations

from functools import partial

from hta_widgets.hta.configs.default_event_args import event_args, group
from hta_widgets.hta.configs.default_values import V1_0_0, EventArgs, YamlVersion

v1_0_0: YamlVersion = V1_0_0

# Each takes a catalogue (key -> `AttributeSpec`) and returns the list of its arguments in one group.
ARGS_INDEX_FUNC = partial(group, "ARGS_INDEX")
ARGS_INPUT_SHAPE_FUNC = partial(group, "ARGS_INPUT_SHAPE")
ARGS_BANDWIDTH_FUNC = partial(group, "ARGS_BANDWIDTH")
ARGS_SYNC_FUNC = partial(group, "ARGS_SYNC")
ARGS_MINIMUM_FUNC = partial(group, "ARGS_MINIMUM")
ARGS_COMPLETE_FUNC = partial(group, "ARGS_COMPLETE")
ARGS_INFO_FUNC = partial(group, "ARGS_INFO")
ARGS_COMMUNICATION_FUNC = partial(group, "ARGS_COMMUNICATION")
ARGS_TRITON_KERNELS_FUNC = partial(group, "ARGS_TRITON_KERNELS")
ARGS_DEFAULT_FUNC = partial(group, "ARGS_DEFAULT")


def parse_event_args_yaml(version: YamlVersion) -> EventArgs:
    """The catalogue and its groups; see `default_event_args.event_args`."""
    return event_args(version)
