"""Edits as text: what is written is read again, and nothing else is."""

import math

import pytest

from hta_widgets import edits
from hta_widgets.analysis.replay.expressions import parse, parse_all, written

EDITS = [
    edits.host(),
    edits.host(0.5, within="aten::*"),
    edits.host(0, outside="enumerate(DataLoader)*", exposed=True),
    edits.launches(0.25),
    edits.syncs(),
    edits.syncs("cuda*", within="x"),
    edits.allocator(),
    edits.without("a'b\"c\\d\n", keep_ns=7),
    edits.kernels(math.inf, name="*[gemm]*", within="é"),
    edits.copies(3.5, name="*HtoD*"),
    edits.communication(0.25, name="*AllReduce*"),
    edits.graphs(20, 1_000),
    edits.unprofiled(6_660_000),
    edits.copy_bandwidth(24.0, name="*Pageable*", within="a"),
    edits.bus_bandwidth(300.0, name="*AllReduce*"),
    edits.kernel_time(1_000, "gemm", within="b"),
    edits.overlap(),
    edits.own_stream("Memcpy*", within="c"),
    edits.prompt_communication("nccl*"),
    edits.prefetch(),
    edits.prefetch(2, phase="backward"),
    edits.fused_optimizer(),
    edits.fused_attention(),
    edits.padded_products(),
    edits.batched_products(),
    edits.full_waves(),
    edits.filled_device(),
    edits.at_roof(0.25, name="*gemm*", operation="gemm"),
    edits.kernels(math.inf, operation="reduction"),
    edits.without("step / [[]x] / aten::mm"),
    edits.no_recomputation(),
    edits.fused_pointwise(),
    edits.pauses(),
    edits.pauses("aten::[[]x", longer_than_ns=2_000_000),
    edits.no_stragglers(),
    edits.median_rank(3),
    edits.even_operations("*gemm*"),
    edits.faster_links(math.inf, name="all_reduce"),
    edits.larger_buckets(25_000_000),
    edits.microbatches(16),
    edits.microbatches(16, same_size=True),
    edits.larger_buckets(25_000_000, name="*gather"),
]


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.expression)
def test_what_an_edit_prints_is_read_again(edit):
    assert parse(edit.expression) == edit
    assert parse(edit.expression.removeprefix("edits.")) == edit


def test_several_are_read_as_they_are_printed():
    text = f"[{', '.join(edit.expression for edit in EDITS)}]"
    assert parse_all(text) == tuple(EDITS)
    assert parse_all("[]") == ()
    for edit in EDITS:
        assert parse_all(edit.expression) == (edit,)
    for wrong in ("[host(), 2]", "[[host()]]", "host(), host()", "[host()"):
        with pytest.raises(ValueError, match="such as kernels"):
            parse_all(wrong)


def test_no_change_is_too_long_to_be_read():
    """Of thirty kernels, and of one, whose names have templates in templates."""
    many = tuple(edits.kernels(math.inf, name=f"{number}{'<at::native>' * 60}") for number in range(30))
    assert parse_all(written(many)) == many
    one = (edits.kernels(2.0, name="x" * 11_000_000),)
    assert parse_all(written(one)) == one


def test_every_edit_is_among_them():
    makers = set(edits.__all__) - {"Edit", "exactly"}
    assert {edit.expression.partition("(")[0].removeprefix("edits.") for edit in EDITS} == makers


def test_as_one_writes_it():
    assert parse(" kernels(faster=2, name='*gemm*') ") == edits.kernels(2.0, name="*gemm*")
    assert parse("kernels(inf)") == parse("kernels(math.inf)") == edits.kernels(math.inf)
    assert parse("syncs(None)") == edits.syncs()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "such as kernels"),
        ("kernels", "such as kernels"),
        ("kernels(2", "such as kernels"),
        ("kernels(2); host()", "such as kernels"),
        ("[host()]", "such as kernels"),
        ("\0", "such as kernels"),
        ("(" * 5_000, "such as kernels"),
        ("host(" + "-" * 9_000 + "1)", "not an edit"),
        pytest.param("x" * 10_000_001, "^'x{200}'… is not an edit", id="long"),
        ("gpus(2)", "the edits are allocator, at_roof, batched_products, bus_bandwidth"),
        ("Edit('x')", "the edits are"),
        ("exactly('x')", "the edits are"),
        ("os.system('x')", "the edits are"),
        ("__import__('os')", "the edits are"),
        ("edits.host.__globals__['x']()", "the edits are"),
        ("host(0)()", "the edits are"),
        ("host(open('x'))", "numbers, texts"),
        ("host(x)", "numbers, texts"),
        ("host(1 if 1 else 2)", "numbers, texts"),
        ("host(2**9)", "numbers, texts"),
        ("host(*[1])", "written out"),
        ("host(**{'time': 1})", "written out"),
        ("kernels()", "faster"),
        ("copies(2, 3, 4, 5)", r"copies\(faster, name=None, within=None\)"),
        ("kernels(2, nme='x')", "nme"),
        ("kernels('2')", "faster must be a number, not '2'"),
        ("kernels(True)", "faster must be a number"),
        ("host(exposed=1)", "exposed must be True or False"),
        ("kernels(2, name=3)", "name must be a text"),
        ("without(None)", "name must be a text"),
        ("graphs(2.5)", "at_least must be a whole number"),
        ("kernels(0)", "more than 0"),
        ("host(-1)", "at least 0"),
        ("host(inf)", "at least 0"),
        ("kernels(1" + "0" * 400 + ")", "too large"),
    ],
)
def test_anything_else_is_refused(text, said):
    with pytest.raises(ValueError, match=said):
        parse(text)
