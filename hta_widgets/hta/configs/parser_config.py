"""Which event arguments become columns of HTA's frames."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from enum import StrEnum
from pprint import pprint

import pandas as pd

from hta_widgets.hta.configs.default_event_args import DEFAULT_VERSION, event_args
from hta_widgets.hta.configs.default_values import AttributeSpec, ValueType, YamlVersion

DEFAULT_PARSE_VERSION: YamlVersion = DEFAULT_VERSION
DEFAULT_VER_EVENT_ARGS = event_args()
AVAILABLE_ARGS: dict[str, AttributeSpec] = DEFAULT_VER_EVENT_ARGS.AVAILABLE_ARGS
MAX_EVENT_DURATION_US: int = 7 * 24 * 3600 * 1_000_000


class ParserBackend(StrEnum):
    """HTA's parsers. One reader does their work here; the ijson ones leave out `skip_event_types`."""

    JSON = "json"
    IJSON = "ijson"
    IJSON_BATCHED = "ijson_batched"
    IJSON_BATCH_AND_COMPRESS = "ijson_batch_and_compress"


class TraceType(StrEnum):
    """Kinds of recorded programs."""

    Training = "training"
    TrainingWoProfilerstepAnnot = "training_wo_profilerstep_annot"
    Inference = "inference"


class ParserConfig:
    """How event arguments become columns.

    Args:
        args: the arguments to read, by default `ARGS_DEFAULT`.
        parse_all_args: read every argument that occurs instead.
        selected_arg_keys: names of columns; only those of `args` are read.
        skip_event_types: categories to leave out, read with one of the ijson backends.

    Attributes:
        max_event_duration_us: longer events are left out as corrupt; None: 7 days.
    """

    ARGS_INPUT_SHAPE: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_INPUT_SHAPE
    ARGS_BANDWIDTH: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_BANDWIDTH
    ARGS_SYNC: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_SYNC
    ARGS_MINIMUM: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_MINIMUM
    ARGS_COMPLETE: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_COMPLETE
    ARGS_INFO: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_INFO
    ARGS_TRITON_KERNELS: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_TRITON_KERNELS
    ARGS_COMMUNICATION: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_COMMUNICATION
    ARGS_DEFAULT: list[AttributeSpec] = DEFAULT_VER_EVENT_ARGS.ARGS_DEFAULT
    DEFAULT_MIN_REQUIRED_COLS: tuple[str, ...] = ("ts", "dur", "name", "cat", "pid", "tid")

    def __init__(
        self,
        args: list[AttributeSpec] | None = None,
        user_provide_trace_type: TraceType | None = None,
        version: YamlVersion = DEFAULT_PARSE_VERSION,
        parse_all_args: bool = False,
        selected_arg_keys: list[str] | None = None,
        skip_event_types: set[str] | None = None,
        convert_ts_to_integer: bool = True,
    ) -> None:
        # A copy: add_args must not grow the class's groups (or the caller's list).
        self.args: list[AttributeSpec] = list(args) if args else self.get_default_args(version)
        self.parser_backend: ParserBackend | None = None
        self.trace_memory = False
        self.user_provide_trace_type = user_provide_trace_type
        self.skip_event_types = {"python_function"} if skip_event_types is None else set(skip_event_types)
        self.min_required_cols: list[str] = list(self.DEFAULT_MIN_REQUIRED_COLS)
        self.drop_gpu_user_annotation = True
        self.version = version
        self.parse_all_args = parse_all_args
        self.selected_arg_keys = selected_arg_keys
        self.batch_size = 1000
        self.convert_ts_to_integer = convert_ts_to_integer
        self.max_event_duration_us: int | None = MAX_EVENT_DURATION_US

    def __repr__(self) -> str:
        return (
            f"ParserConfig(args={[spec.name for spec in self.args]}, parse_all_args={self.parse_all_args}, "
            f"parser_backend={self.parser_backend}, version={self.version.get_version_str()})"
        )

    @property
    def arg_map(self) -> dict[str, AttributeSpec]:
        """Column -> argument."""
        return {spec.name: spec for spec in self.args}

    def clone(self) -> ParserConfig:
        return copy.deepcopy(self)

    def get_fingerprint_key(self) -> tuple[tuple[str, ...], bool]:
        """What of the configuration changes a frame's columns, as something to hash."""
        return tuple(sorted(spec.name for spec in self.get_args())), self.parse_all_args

    # -- the process-wide default ----------------------------------------------------------------------

    @classmethod
    def get_default_cfg(cls) -> ParserConfig:
        """A copy of the configuration that traces without one are read with."""
        return _default.clone()

    @classmethod
    def set_default_cfg(cls, cfg: ParserConfig) -> None:
        """Read traces that are opened later with a copy of this configuration."""
        global _default
        _default = cfg.clone()

    @classmethod
    def get_versioned_cfg(cls, version: YamlVersion) -> ParserConfig:
        return cls(version=version)

    @staticmethod
    def set_global_parser_config_version(version: YamlVersion) -> None:
        """Make the default configuration one of another catalogue version."""
        ParserConfig.set_default_cfg(ParserConfig(version=version))

    @classmethod
    def enable_communication_args(
        cls, cfg: ParserConfig | None = None, version: YamlVersion = DEFAULT_PARSE_VERSION
    ) -> ParserConfig:
        """Add the arguments of collectives to a configuration, by default to the process-wide one."""
        chosen = _default if cfg is None else cfg
        chosen.add_args(event_args().ARGS_COMMUNICATION)
        return chosen

    # -- the arguments -----------------------------------------------------------------------------------

    @classmethod
    def get_minimum_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        return event_args().ARGS_MINIMUM

    @classmethod
    def get_default_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        return event_args().ARGS_DEFAULT

    @classmethod
    def get_info_args(cls, version: YamlVersion = DEFAULT_PARSE_VERSION) -> list[AttributeSpec]:
        return event_args().ARGS_INFO

    @classmethod
    def get_all_available_args(cls) -> dict[str, AttributeSpec]:
        return AVAILABLE_ARGS

    @classmethod
    def show_available_args(cls) -> None:
        pprint(cls.get_all_available_args())  # noqa: T203 - what the method is for

    def get_args(self) -> list[AttributeSpec]:
        """The arguments to read.

        Raises:
            KeyError: a selected column is none of `args`.
        """
        if self.selected_arg_keys is None:
            return self.args
        by_column = self.arg_map
        return [by_column[key] for key in self.selected_arg_keys]

    def set_args(self, args: Iterable[AttributeSpec]) -> None:
        self.args = []
        self.add_args(args)

    def add_args(self, args: Iterable[AttributeSpec]) -> None:
        """Read these too; a column that is there already stays as it is."""
        for spec in args:
            if spec.name not in self.arg_map:
                self.args.append(spec)

    def set_args_selector(self, selected_arg_keys: list[str] | None = None) -> ParserConfig:
        self.selected_arg_keys = selected_arg_keys
        return self

    def set_parse_all_args(self, parse_all_args: bool) -> ParserConfig:
        self.parse_all_args = parse_all_args
        return self

    def set_skip_event_types(self, skip_event_types: set[str] | None = None) -> ParserConfig:
        self.skip_event_types = set(skip_event_types or ())
        return self

    def set_min_required_cols(self, cols: Iterable[str]) -> None:
        self.min_required_cols = list(cols)

    def get_min_required_cols(self) -> list[str]:
        return self.min_required_cols

    def set_trace_memory(self, trace_memory: bool) -> None:
        self.trace_memory = trace_memory

    def set_drop_gpu_user_annotation(self, should_drop: bool) -> None:
        self.drop_gpu_user_annotation = should_drop

    def set_parser_backend(self, parser_backend: ParserBackend | None) -> None:
        self.parser_backend = parser_backend

    # -- arguments that the catalogue does not have ----------------------------------------------------

    @classmethod
    def transform_arg_name(cls, arg: str) -> str:
        """The column for a JSON key: ``"est. achieved occupancy %"`` -> ``"est_achieved_occupancy"``."""
        column = re.sub(r"\([^)]*\)", "", arg).lower()
        column = re.sub(r"[ \-/.%_]+", "_", column).strip("_")
        # The column `name` is the event's own name.
        return "arg_name" if column == "name" else column

    @classmethod
    def make_attribute_spec(
        cls, raw_name: str, value: object, min_supported_version: YamlVersion = DEFAULT_PARSE_VERSION
    ) -> AttributeSpec:
        """The description of an argument by one of its values."""
        kinds: tuple[tuple[type, ValueType, object], ...] = (
            (int, ValueType.Int, 0),
            (float, ValueType.Float, 0.0),
            (str, ValueType.String, ""),
            (object, ValueType.Object, None),
        )
        kind, default = next((kind, default) for type_, kind, default in kinds if isinstance(value, type_))
        return AttributeSpec(cls.transform_arg_name(raw_name), raw_name, kind, default, min_supported_version)

    @classmethod
    def infer_attribute_specs(
        cls, args: pd.Series, reference_specs: dict[str, AttributeSpec] | None = None
    ) -> dict[str, AttributeSpec]:
        """JSON key -> description of all arguments in a column of ``args`` objects.

        Known keys are described as in `reference_specs` and come first, in its order.
        """
        first: dict[str, object] = {}
        for argument in args:
            if isinstance(argument, dict):
                for key, value in argument.items():
                    first.setdefault(key, value)
        known = [spec for spec in (reference_specs or {}).values() if spec.raw_name != "name"]
        found = {spec.raw_name: spec for spec in known if spec.raw_name in first}
        return found | {
            key: cls.make_attribute_spec(key, value) for key, value in first.items() if key not in found
        }


_default = ParserConfig()
