"""Modules in the wrong mode: training without a backward pass, evaluation with one."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from hta_widgets.analysis.core.claim import Claim, Said, say
from hta_widgets.analysis.core.memoize import memoize_per_rank
from hta_widgets.analysis.findings.finding import Evidence, Finding
from hta_widgets.analysis.findings.inputs import Inputs
from hta_widgets.analysis.findings.rule import Rule, never
from hta_widgets.analysis.idle.causes import rows_named
from hta_widgets.analysis.operators.inputs import parse_values
from hta_widgets.trace.classify import EventClass
from hta_widgets.trace.rank_trace import RankTrace

# Where the operator's argument `training` stands.
_MODE: Final = {"aten::batch_norm": 5, "aten::dropout": 2, "aten::native_batch_norm": 5}
# What runs in training alone, whether arguments are recorded or not.
_TRAINS: Final = {
    "aten::batch_norm": re.compile(
        r"\bbn_fw_tr_|batch_norm_collect_statistics|BatchNormFwdTrain|^aten::_?batch_norm_(?:with_update|stats)"
    ),
    "aten::dropout": re.compile(r"fused_dropout_kernel|^aten::native_dropout$"),
}
_CALLED: Final = {"aten::batch_norm": "Batch norm", "aten::dropout": "Dropout"}


class _Modes(NamedTuple):
    """Of a rank: operator -> calls in training mode, and in evaluation mode; whether a backward pass runs."""

    training: dict[str, int]
    evaluation: dict[str, int]
    backward: bool | None


def without_eval(inputs: Inputs) -> Finding | None:
    """Batch norm or dropout in training mode, where nothing shows a backward pass."""
    for rank in inputs.trace.ranks_of(inputs.scope):
        modes = inputs.recorded(rank, _modes)
        if modes.backward is not False or not modes.training:
            continue
        name = max(sorted(modes.training), key=lambda each: modes.training[each])
        updates: Said = ""
        if name == "aten::batch_norm":
            updates = " It computes statistics of each batch, and changes the model's."
        text = say(
            "{what} runs in training mode ({calls} call{s}), but no backward pass is recorded: is "
            "model.eval() missing?{updates}",
            what=_CALLED[name],
            calls=Claim(
                "calls_in_training", modes.training[name], "count", ranks=(rank,), about={"name": name}
            ),
            updates=updates,
            s="s" * (modes.training[name] > 1),
        )
        return _finding(
            name, rank, text, "model.eval() before inference, and torch.inference_mode() around it."
        )
    return None


def without_train(inputs: Inputs) -> Finding | None:
    """Batch norm in evaluation mode in every call, though a backward pass runs."""
    for rank in inputs.trace.ranks_of(inputs.scope):
        modes, name = inputs.recorded(rank, _modes), "aten::batch_norm"
        if modes.backward and modes.evaluation.get(name) and not modes.training.get(name):
            text = say(
                "{what} uses the model's statistics in all {calls} calls, though a backward pass runs.",
                what=_CALLED[name],
                calls=Claim(
                    "calls_in_evaluation",
                    modes.evaluation[name],
                    "count",
                    ranks=(rank,),
                    about={"name": name},
                ),
            )
            return _finding(
                name, rank, text, "model.train() before training, unless these layers are frozen."
            )
    return None


def _finding(name: str, rank: int, text: Said, advice: str) -> Finding:
    return Finding(0, 0.0, text, advice, "operators", Evidence(name=name, event_rank=rank), severity="note")


@memoize_per_rank()
def _modes(rank_trace: RankTrace) -> _Modes:
    kind = rank_trace.recording.kind
    backward = {"training": True, "forward": False, "serving": False}.get(kind)
    training: dict[str, int] = {}
    evaluation: dict[str, int] = {}
    stated = rank_trace.has_argument("concrete_inputs")
    for operator, pattern in _TRAINS.items():
        if stated:
            training[operator], evaluation[operator] = _stated(rank_trace, operator)
        else:
            training[operator] = len(rows_named(rank_trace, pattern.search))
    return _Modes(
        {name: count for name, count in training.items() if count},
        {name: count for name, count in evaluation.items() if count},
        backward,
    )


def _stated(rank_trace: RankTrace, operator: str) -> tuple[int, int]:
    """How many calls say that they are in training, and in evaluation mode."""
    rows = rows_named(rank_trace, operator.__eq__)
    rows = rows[rank_trace.event_class[rows] == EventClass.HOST_OP]
    texts = rank_trace.table.dictionary("concrete_inputs")
    counts = {"True": 0, "False": 0}
    for code in rank_trace.argument_codes_of("concrete_inputs", rows).tolist():
        values = parse_values(texts[code]) if code >= 0 else ()
        mode = values[_MODE[operator]] if len(values) > _MODE[operator] else ""
        counts[mode] = counts.get(mode, 0) + 1
    return counts["True"], counts["False"]


RULES = (
    Rule(
        topic="without_eval",
        question="in which mode modules run",
        title="Training mode without a backward pass",
        judge=without_eval,
        role="aside",
        mistake=True,
        applies=never,
        no_change="it may change results, not only time",
        wrong_if="The backward pass comes after the recording.",
    ),
    Rule(
        topic="without_train",
        question="in which mode modules run",
        title="Evaluation mode with a backward pass",
        judge=without_train,
        role="aside",
        mistake=True,
        applies=never,
        no_change="it may change results, not only time",
        wrong_if="The layers are frozen on purpose.",
    ),
)
