"""Events of small recordings written by hand, with the names that the profiler gives them."""

from tests.analysis.kineto_file import Event, event, kernel


def call(name: str, start: int, end: int, tid: int = 1, **args: object) -> Event:
    return event("cuda_runtime", name, start, end - start, tid=tid, **args)


def launch(correlation: int, start: int, end: int, tid: int = 1, name: str = "cudaLaunchKernel") -> Event:
    return call(name, start, end, tid, correlation=correlation)


def work(name: str, correlation: int, start: int, end: int, stream: int = 7, **args: object) -> Event:
    return kernel(name, start, end - start, stream=stream, correlation=correlation, **args)


def copy(
    name: str, correlation: int, start: int, end: int, stream: int = 7, cat: str = "gpu_memcpy"
) -> Event:
    return work(name, correlation, start, end, stream, cat=cat)


def operator(name: str, start: int, end: int, tid: int = 1) -> Event:
    return event("cpu_op", name, start, end - start, tid=tid)


def step(number: int, start: int, end: int) -> Event:
    return event("user_annotation", f"ProfilerStep#{number}", start, end - start)
