"""A model that denoises in passes one after the other, and what looks like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hta_widgets.analysis import overview
from tests.claims.checking import faults_of
from tests.verdicts.planted.host_program import US, Program

UNET, VAE = "nn.Module: UNet2DConditionModel_0", "nn.Module: AutoencoderKL_0"
SCHEDULER = "diffusers/schedulers/scheduling_ddim.py(340): step"


def denoising(
    passes: tuple[int, ...] = (2,), kernels: tuple[int, ...] = (20,), by: str = SCHEDULER
) -> Program:
    """Twelve steps of so many passes of so many kernels, in turn; then a module that decodes."""
    program = Program()

    def call(name: str, kernels: int) -> None:
        program._calls += 1
        with program.inside("python_function", name, **{"Python id": program._calls}):
            program.silence(US)
            for _ in range(kernels):
                program.launch(20 * US)

    for step in range(12):
        for nth in range(passes[step % len(passes)]):
            call(UNET, kernels[nth % len(kernels)])
        call(by, 1)
    call(VAE, 30)
    program.synchronise()
    return program


def topics(folder: Path, program: Program) -> dict[str, str]:
    trace = program.open(folder)
    frame = overview(trace)
    assert not list(faults_of(trace, frame))
    return dict(zip(frame["topic"], frame["text"], strict=True))


def test_two_passes_of_each_step(tmp_path: Path) -> None:
    text = topics(tmp_path, denoising())["passes_in_turn"]
    assert text.startswith("nn.Module: UNet2DConditionModel_0 runs 2 times in each denoising step")


@pytest.mark.parametrize(
    "program",
    [
        lambda: denoising((1,)),  # guidance in one batch
        lambda: denoising((2, 1)),  # not in each step
        lambda: denoising((2, 2, 2, 2, 2, 0, 2, 2, 2, 2, 2, 2)),  # in one step it does not run
        lambda: denoising((2,), (20, 5)),  # other work
        lambda: denoising(by="train.py(7): step"),  # no scheduler says what a step is
    ],
)
def test_passes_that_are_none(tmp_path: Path, program) -> None:
    assert "passes_in_turn" not in topics(tmp_path, program())
