"""A simulator of PyTorch jobs that writes the traces Kineto would, and knows the truth about them.

The bundled example traces are simulated, deterministic to the byte, and come with the exact times that went
into them, so that tests can compare an analysis with the truth instead of with another tool.

It stays out of the wheel. In a checkout or an unpacked sdist it needs nothing but Python's standard library:
`python -m examples.simulator FOLDER` writes the bundled traces, and

    from examples.simulator import SimulatedJob, simulate

    simulate(SimulatedJob("mine", "ddp", ranks=8, steps=3, straggler=5)).write(Path("traces"))

those of a job of one's own.

    job         what to run, and running it
    training    one training step; `serving` one inference step; `gpt` the model, `autograd` its
                gradients, `ddp` and `fsdp` data parallelism over an `nccl` group
    rank        a process: two `host` threads, a GPU, and the CUDA calls between them
    machine     what hosts, launches and devices take, made up and measured
    device      streams; `collective` where ranks meet
    kineto      the file;  `truth` what it must say
"""

from examples.simulator.job import SimulatedJob, Simulation, Strategy, simulate
from examples.simulator.truth import JobTruth, Occupation, RankTruth

__all__ = ["JobTruth", "Occupation", "RankTruth", "SimulatedJob", "Simulation", "Strategy", "simulate"]
