"""Event arguments that the event table does not hold: found and read when a configuration asks for them."""

from __future__ import annotations

import json
import warnings

from hta_widgets.hta.common.rank_frame import stored_kind
from hta_widgets.hta.configs.default_values import AttributeSpec, ValueType
from hta_widgets.hta.configs.parser_config import ParserConfig
from hta_widgets.trace.classify import COUNTER_RANGE
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.reader import cache
from hta_widgets.trace.reader.raw import RawTrace
from hta_widgets.trace.reader.schema import ARGUMENT_COLUMNS, COUNTER_ARGS, EVENT_COLUMNS
from hta_widgets.trace.reader.table import EventTable

# Hardware counters (CUPTI) come as arguments whose keys are the counters' names.
_OWN_COLUMNS = frozenset(column.name for column in (*EVENT_COLUMNS, COUNTER_ARGS, *ARGUMENT_COLUMNS))


def arguments_of(
    rank_trace: RankTrace, config: ParserConfig
) -> tuple[list[AttributeSpec], EventTable | None]:
    """The arguments that become columns of a rank, and a table with those that its own table lacks.

    Where the trace has hardware counters, they are columns too, under their own names, in alphabetical order.
    """
    specs = _all_arguments(rank_trace) if config.parse_all_args else list(config.get_args())
    known = {spec.raw_name for spec in specs}
    counters = [key for key in _counter_keys(rank_trace) if key not in known]
    specs += [AttributeSpec(key, key, ValueType.Object, -1) for key in counters]
    wanted = tuple(dict.fromkeys(spec.raw_name for spec in specs if stored_kind(spec.raw_name) is None))
    extra = _read(rank_trace, wanted) if wanted else None
    if config.parse_all_args:
        specs = [_described(spec, extra) for spec in specs]
    return specs, extra


def _read(rank_trace: RankTrace, wanted: tuple[str, ...]) -> EventTable:
    # The event table has columns of its own; an argument with the name of one cannot have another.
    if taken := sorted(set(wanted) & _OWN_COLUMNS):
        raise ValueError(f"the arguments {', '.join(taken)} cannot be read: the event table has such columns")
    return cache.load(rank_trace.path, extra_args=wanted)


def _counter_keys(rank_trace: RankTrace) -> list[str]:
    if COUNTER_RANGE not in rank_trace.categories:
        return []
    of_counters = rank_trace.category == rank_trace.categories.index(COUNTER_RANGE)
    events = rank_trace.event_id[of_counters].tolist()
    return sorted(_keys(RawTrace.read(rank_trace.path), events)) if events else []


def _all_arguments(rank_trace: RankTrace) -> list[AttributeSpec]:
    """Every argument of the rank's events: those of the catalogue in its order, then the others by name."""
    found = _keys(RawTrace.read(rank_trace.path), rank_trace.event_id.tolist())
    if taken := {key for key in found & _OWN_COLUMNS if stored_kind(key) is None}:
        warnings.warn(
            f"arguments left out, as their names are taken: {', '.join(sorted(taken))}", stacklevel=2
        )
        found -= taken
    catalogue = [spec for spec in ParserConfig.get_all_available_args().values() if spec.raw_name != "name"]
    specs = [spec for spec in catalogue if spec.raw_name in found]
    described = {spec.raw_name for spec in specs}
    columns = {spec.name for spec in specs}
    for key in sorted(found - described):
        column = ParserConfig.transform_arg_name(key)
        # Two keys may become the same column ("Bytes", "bytes"): the later one keeps its own spelling.
        specs.append(AttributeSpec(key if column in columns else column, key, ValueType.Object, None))
        columns.add(specs[-1].name)
    return specs


def _keys(raw: RawTrace, events: list[int]) -> set[str]:
    found: set[str] = set()
    for at in events:
        args = raw.event(at).get("args")
        if isinstance(args, dict):
            found.update(args)
    return found


def _described(spec: AttributeSpec, extra: EventTable | None) -> AttributeSpec:
    """The type and default of an argument that the catalogue does not know, by its kind or first value."""
    if spec.value_type is not ValueType.Object or spec.default_value is not None:
        return spec
    kind = stored_kind(spec.raw_name)
    if kind is not None:
        first: object = {"int": 0, "float": 0.0, "text": "", "json": None}[kind]
    else:
        if extra is None or not extra.has(spec.raw_name):
            return spec
        codes = extra.sparse(spec.raw_name)[1]
        first = json.loads(extra.dictionary(spec.raw_name)[int(codes[0])])
    return ParserConfig.make_attribute_spec(spec.raw_name, first)._replace(name=spec.name)
