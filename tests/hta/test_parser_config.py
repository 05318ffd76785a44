"""HTA's `ParserConfig`: which arguments become columns, and what the columns hold."""

import json
import logging

import numpy as np
import pandas as pd
import pytest

from hta_widgets.hta.common.trace import Trace
from hta_widgets.hta.configs import event_args_yaml_parser
from hta_widgets.hta.configs.config import HtaConfig, logger, setup_logger
from hta_widgets.hta.configs.default_event_args import event_args
from hta_widgets.hta.configs.default_values import AttributeSpec, EventArgs, ValueType, YamlVersion
from hta_widgets.hta.configs.env_options import HTAEnvOptions, get_options
from hta_widgets.hta.configs.event_args_yaml_parser import parse_event_args_yaml
from hta_widgets.hta.configs.parser_config import AVAILABLE_ARGS, ParserBackend, ParserConfig
from tests.support import shared_trace
from tests.trace.helpers import slice_, write


@pytest.fixture(autouse=True)
def default_config():
    """The process-wide default, put back after each test."""
    before = ParserConfig.get_default_cfg()
    yield
    ParserConfig.set_default_cfg(before)


def frame_of(tmp_path, events, config=None):
    trace = Trace({0: str(write(tmp_path / "t.json", events))}, "", config)
    trace.load_traces()
    return trace.get_trace(0)


def test_the_catalogue():
    assert len(AVAILABLE_ARGS) == 52
    assert AVAILABLE_ARGS["data::bandwidth"] == AttributeSpec(
        "memory_bw_gbps", "memory bandwidth (GB/s)", ValueType.Float, 0.0, YamlVersion(9, 9, 9)
    )
    assert [spec.name for spec in ParserConfig.ARGS_DEFAULT][:4] == [
        "stream", "correlation", "bytes", "memory_bw_gbps"
    ]  # fmt: skip
    assert len(ParserConfig.ARGS_DEFAULT) == 20
    assert len(ParserConfig.ARGS_COMPLETE) == 47
    assert [spec.name for spec in ParserConfig.get_minimum_args()] == ["stream", "correlation"]
    assert ParserConfig.get_all_available_args() is AVAILABLE_ARGS
    # what an event without it has; each of them: tests/parity
    numbers = [spec for spec in AVAILABLE_ARGS.values() if spec.value_type is ValueType.Int]
    assert {spec.default_value for spec in numbers} == {-1, 0}


def test_what_a_configuration_is_when_nothing_is_asked_for():
    """Values of HTA's own object; most of them no code reads, there or here."""
    assert {name: value for name, value in vars(ParserConfig()).items() if name != "args"} == {
        "parser_backend": None, "trace_memory": False, "user_provide_trace_type": None,
        "skip_event_types": {"python_function"},
        "min_required_cols": ["ts", "dur", "name", "cat", "pid", "tid"], "drop_gpu_user_annotation": True,
        "version": YamlVersion(1, 0, 0), "parse_all_args": False, "selected_arg_keys": None,
        "batch_size": 1000, "convert_ts_to_integer": True, "max_event_duration_us": 604_800_000_000,
    }  # fmt: skip


def test_adding_arguments_leaves_the_groups_alone():
    config = ParserConfig(ParserConfig.ARGS_MINIMUM)
    config.add_args([*ParserConfig.ARGS_MINIMUM, AVAILABLE_ARGS["cuda::device"]])
    assert [spec.name for spec in config.get_args()] == ["stream", "correlation", "device"]
    assert len(ParserConfig.ARGS_MINIMUM) == 2
    config.set_args(ParserConfig.ARGS_SYNC)
    assert len(config.get_args()) == 2 and len(ParserConfig.ARGS_MINIMUM) == 2
    config.set_min_required_cols(["ts"])
    assert config.get_min_required_cols() == ["ts"]
    assert len(ParserConfig.DEFAULT_MIN_REQUIRED_COLS) == 6


def test_selecting_columns():
    config = ParserConfig(selected_arg_keys=["bytes", "stream"])
    assert [spec.name for spec in config.get_args()] == ["bytes", "stream"]
    assert config.get_fingerprint_key() == (("bytes", "stream"), False)
    with pytest.raises(KeyError, match="none"):
        config.set_args_selector(["none"]).get_args()


def test_the_default_is_a_copy():
    config = ParserConfig.get_default_cfg()
    config.set_args(ParserConfig.ARGS_MINIMUM)
    assert len(ParserConfig.get_default_cfg().get_args()) == 20
    ParserConfig.set_default_cfg(config)
    config.add_args(ParserConfig.ARGS_SYNC)
    assert len(ParserConfig.get_default_cfg().get_args()) == 2
    assert len(ParserConfig.enable_communication_args().get_args()) == 10
    ParserConfig.set_global_parser_config_version(YamlVersion(1, 0, 0))
    assert len(ParserConfig.get_default_cfg().get_args()) == 20


def test_new_traces_are_read_with_the_default(tmp_path):
    config = ParserConfig.get_default_cfg()
    config.set_args(ParserConfig.ARGS_MINIMUM)
    ParserConfig.set_default_cfg(config)
    frame = frame_of(tmp_path, [slice_("a", "cpu_op", 1, 1)])
    assert list(frame.columns)[8:] == ["stream", "correlation", "index_correlation", "iteration"]


@pytest.mark.parametrize(
    ("key", "column"),
    [
        ("Cuda-Kernel/Queued", "cuda_kernel_queued"),
        ("Kernel.a(.Queued)__b_%", "kernel_a_b"),
        ("est. achieved occupancy %", "est_achieved_occupancy"),
        ("Name", "arg_name"),
    ],
)
def test_columns_of_keys(key, column):
    assert ParserConfig.transform_arg_name(key) == column


def test_descriptions_by_value():
    made = [ParserConfig.make_attribute_spec("A b", value) for value in (True, 2.5, "x", [1])]
    assert [(spec.value_type, spec.default_value) for spec in made] == [
        (ValueType.Int, 0), (ValueType.Float, 0.0), (ValueType.String, ""), (ValueType.Object, None)
    ]  # fmt: skip
    inferred = ParserConfig.infer_attribute_specs(
        pd.Series([{"New": 1, "stream": 7}, None, {"New": "later"}]), AVAILABLE_ARGS
    )
    assert list(inferred) == ["stream", "New"]
    assert inferred["stream"] == AVAILABLE_ARGS["cuda::stream"]
    assert inferred["New"].value_type is ValueType.Int


def test_versions():
    assert YamlVersion.from_string("1.2.3") == (1, 2, 3)
    assert YamlVersion(1, 2, 3).get_version_str() == "1.2.3"
    with pytest.raises(ValueError, match=r"1\.2"):
        YamlVersion.from_string("1.2")


def test_a_spec_is_equal_to_the_same_of_another_version_alone():
    spec = AttributeSpec("mine", "My Arg", ValueType.Int, -1)
    newer = spec._replace(min_supported_version=YamlVersion(2, 0, 0))
    assert spec == newer and not spec != newer and len({spec, newer}) == 1  # noqa: SIM202 - both operators
    assert spec != spec._replace(default_value=0) and spec != tuple(spec)


def test_arguments_that_only_the_file_has(tmp_path):
    args = {"My Arg": 3, "list": [1, {"a": None}], "text": "x", "half": 0.5}
    specs = [
        AttributeSpec("mine", "My Arg", ValueType.Int, -1),
        AttributeSpec("list", "list", ValueType.Object, "[]"),
        AttributeSpec("text", "text", ValueType.String, ""),
        AttributeSpec("half", "half", ValueType.Float, 0.0),
        AttributeSpec("absent", "absent", ValueType.Int, -1),
    ]
    events = [slice_("a", "cpu_op", 1, 1, **args), slice_("b", "cpu_op", 2, 1)]
    frame = frame_of(tmp_path, events, ParserConfig([*ParserConfig.ARGS_MINIMUM, *specs]))
    assert frame["mine"].tolist() == [3, -1] and frame["mine"].dtype == np.int64
    assert frame["list"].tolist() == [[1, {"a": None}], "[]"]
    assert frame["text"].tolist() == ["x", ""]
    assert frame["half"].tolist() == [0.5, 0.0] and frame["half"].dtype == np.float64
    assert frame["absent"].tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("argument", "default", "column"),
    [
        ("Ev Idx", -1, np.array([3, -1])),
        ("Ev Idx", 0.5, np.array([3, 0.5], object)),  # it is not cut to 0
        ("Ev Idx", "none", np.array([3, "none"], object)),
        ("memory bandwidth (GB/s)", -1, np.array([3.0, -1.0])),
        ("memory bandwidth (GB/s)", 0.5, np.array([3.0, 0.5])),
        ("memory bandwidth (GB/s)", None, np.array([3.0, None], object)),
    ],
)
def test_a_default_is_taken_as_it_is(tmp_path, argument, default, column):
    config = ParserConfig(
        [*ParserConfig.ARGS_MINIMUM, AttributeSpec("mine", argument, ValueType.Int, default)]
    )
    both = [slice_("a", "cpu_op", 1, 1, **{argument: 3}), slice_("b", "cpu_op", 2, 1)]
    frame = frame_of(tmp_path, both, config)
    assert (frame["mine"].tolist(), frame["mine"].dtype) == (column.tolist(), column.dtype)
    # where each event has a value, the column is of numbers
    assert frame_of(tmp_path, both[:1], config)["mine"].dtype == (
        np.int64 if argument == "Ev Idx" else np.float64
    )


def test_all_arguments(tmp_path):
    events = [
        {**slice_("a", "cpu_op", 1, 1), "args": {"Ev Idx": 4, "name": "inner", "Zeta": 1.5}},
        slice_("b", "cpu_op", 2, 1, **{"flag": True, "Alpha (x)": [1]}),
        {"ph": "M", "name": "process_name", "pid": 10, "args": {"unseen": 1}},
    ]
    frame = frame_of(tmp_path, events, ParserConfig(parse_all_args=True))
    assert list(frame.columns)[8:-2] == ["ev_idx", "alpha", "zeta", "flag", "arg_name"]
    assert frame["ev_idx"].tolist() == [4, -1]
    assert frame["zeta"].tolist() == [1.5, 0.0]
    assert frame["arg_name"].tolist() == ["inner", ""]
    assert frame["flag"].tolist() == [0, True]
    assert frame["alpha"].tolist() == [None, [1]]


def test_an_argument_does_not_replace_the_events_name(tmp_path):
    config = ParserConfig([*ParserConfig.ARGS_MINIMUM, AVAILABLE_ARGS["info::name"]])
    frame = frame_of(tmp_path, [{**slice_("a", "cpu_op", 1, 1), "args": {"name": "other"}}], config)
    assert frame["name"].tolist() == [0] and frame["arg_name"].tolist() == ["other"]


def test_old_spelling_of_external_ids(tmp_path):
    frame = frame_of(tmp_path, [slice_("a", "Operator", 1, 1, **{"external id": 8})])
    assert frame["external_id"].tolist() == [8]


def test_categories_left_out_by_ijson_backends(tmp_path):
    events = [slice_("f.py", "python_function", 1, 1), slice_("a", "cpu_op", 1, 1)]
    config = ParserConfig()
    assert len(frame_of(tmp_path, events, config)) == 2
    config.set_parser_backend(ParserBackend.IJSON)
    assert len(frame_of(tmp_path, events, config)) == 1
    assert len(frame_of(tmp_path, events, config.set_skip_event_types(None))) == 2


def test_longest_event(tmp_path):
    config = ParserConfig()
    config.max_event_duration_us = 10
    frame = frame_of(tmp_path, [slice_("a", "cpu_op", 1, 10), slice_("b", "cpu_op", 1, 10.5)], config)
    assert frame.index.tolist() == [0]


def test_collective_arguments_of_a_real_trace():
    specs = [spec for key, spec in AVAILABLE_ARGS.items() if key.startswith("nccl::process_group")]
    config = ParserConfig.get_default_cfg()
    config.add_args(specs)
    trace = Trace(trace_dir=str(shared_trace("hta/nccl_parser_config")), parser_config=config)
    trace.parse_traces()
    trace.decode_symbol_ids(use_shorten_name=False)
    frame = trace.get_trace(0)
    kernels = frame[frame["s_name"].str.startswith("ncclKernel")]
    assert len(kernels) == 21
    longest = kernels.loc[kernels["dur"].idxmax()]
    assert longest["collective_name"] == "allreduce"
    assert longest["in_msg_nelems"] == longest["out_msg_nelems"] == 2049000
    assert (longest["in_split_size"], longest["out_split_size"]) == ("[]", "[]")
    assert longest["process_group_name"] == "0"
    assert longest["process_group_desc"] == "default_pg"
    assert longest["process_group_ranks"] == "[0, 1]"


def test_triton_arguments_of_a_real_trace():
    config = ParserConfig(ParserConfig.get_minimum_args())
    config.add_args(ParserConfig.ARGS_TRITON_KERNELS)
    trace = Trace(trace_dir=str(shared_trace("hta/triton_example")), parser_config=config)
    trace.parse_traces()
    trace.decode_symbol_ids(use_shorten_name=False)
    rows = trace.get_trace(trace.get_ranks()[0]).query("kernel_backend != ''")
    assert rows[["s_name", "s_cat", "kernel_backend", "kernel_hash"]].to_numpy().tolist() == [
        [
            "triton_poi_fused_add_cos_sin_0",
            "cpu_op",
            "triton",
            "cqaokwf2bph4egogzevc22vluasiyuui4i54zpemp6knbsggfbuu",
        ]
    ]


def test_settings_from_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "trace_analyzer.json").write_text(json.dumps({"a": {"b": 1}, "c": 2}))
    (tmp_path / "own.json").write_text(json.dumps({"c": 3}))
    config = HtaConfig(str(tmp_path / "own.json"))
    assert config.get_config_file_paths()[-1] == str(tmp_path / "own.json")
    assert (config.get_config(dot_path="a.b"), config.get_config("c")) == (1, 3)
    assert config.get_config("a.x", default_value=9) == 9
    assert config.get_config() == {"a": {"b": 1}, "c": 3}
    with pytest.warns(UserWarning, match="no such file"):
        assert HtaConfig(str(tmp_path / "none.json"), load_default_paths=False).get_config() == {}


def test_messages_are_shown_when_asked_for(tmp_path, monkeypatch, capsys):
    for name in ("handlers", "propagate", "level"):
        monkeypatch.setattr(logger, name, getattr(logger, name))
    setup_logger("")
    logger.info("before")
    setup_logger()
    setup_logger()
    logger.info("after")
    (shown,) = capsys.readouterr().out.splitlines()
    assert shown.endswith(" - INFO - after") and " - hta_widgets - test_parser_config.py:L" in shown
    own = tmp_path / "own.config"
    own.write_text(
        "[loggers]\nkeys=root,own\n[handlers]\nkeys=\n[formatters]\nkeys=\n"
        "[logger_root]\nhandlers=\n[logger_own]\nqualname=hta_widgets\nlevel=ERROR\nhandlers=\n"
    )
    root = logging.getLogger()
    for name in ("handlers", "level"):
        monkeypatch.setattr(root, name, getattr(root, name))
    setup_logger(str(own))
    assert logger.level == logging.ERROR


def test_groups_of_any_catalogue():
    parsed = parse_event_args_yaml(YamlVersion(2, 0, 0))
    assert parsed == event_args()
    kernel_hash, stream = (parsed.AVAILABLE_ARGS[key] for key in ("cpu_op::kernel_hash", "cuda::stream"))
    assert kernel_hash.min_supported_version == YamlVersion(1, 1, 0)
    assert stream.min_supported_version == YamlVersion(2, 0, 0)
    assert event_args_yaml_parser.v1_0_0 == YamlVersion(1, 0, 0)
    for field in EventArgs._fields[1:]:
        choose = getattr(event_args_yaml_parser, f"{field}_FUNC")
        assert choose(parsed.AVAILABLE_ARGS) == getattr(parsed, field) != []
    own = {"index::python_id": parsed.AVAILABLE_ARGS["index::python_id"]}
    assert event_args_yaml_parser.ARGS_INDEX_FUNC(own) == list(own.values())


def test_switches(monkeypatch):
    monkeypatch.setenv("HTA_DISABLE_CG_DEPTH", "1")
    monkeypatch.setenv("HTA_DISABLE_NS_ROUNDING", "yes")
    options = HTAEnvOptions()
    assert options.disable_call_graph_depth() and not options.disable_ns_rounding()
    options.set_disable_call_graph_depth(False)
    assert not options.disable_call_graph_depth()
    assert HTAEnvOptions.instance() is HTAEnvOptions.instance()
    assert get_options().count("=") == 5


def test_arguments_named_like_columns_of_the_table(tmp_path):
    events = [{**slice_("a", "cpu_op", 1, 1), "args": {"addr": 1, "ok": 2}}]
    with pytest.warns(UserWarning, match="addr"):
        frame = frame_of(tmp_path, events, ParserConfig(parse_all_args=True))
    assert list(frame.columns)[8:-2] == ["ok"]
    wanted = ParserConfig([AttributeSpec("addr", "addr", ValueType.Int, -1)])
    with pytest.raises(ValueError, match="addr"):
        frame_of(tmp_path, events, wanted)
