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


def steps_of(kernel_ns: int, count: int = 4, host_ns: int = 100_000) -> tuple[list[Event], int]:
    """Steps of a host that takes 100 us for each and launches one kernel; a device with more runs behind."""
    events, free = [], 0
    for number in range(count):
        begin = number * host_ns
        start = max(begin + 15_000, free + 1_000 * (number > 0))
        free = start + kernel_ns
        events += [
            step(number + 1, begin, begin + host_ns - 100),
            operator("aten::mm", begin + 1_000, begin + host_ns - 1_000),
            launch(number + 1, begin + 10_000, begin + 12_000),
            work(f"gemm{number}", number + 1, start, free),
        ]
    return events, count * host_ns


def queued(count: int, holds: int) -> list[Event]:
    """Launches of 1 us every 2 us of kernels of 10 us, into a queue that holds so many."""
    events: list[Event] = []
    now, done = 0, list[int]()
    for number in range(count):
        start = max(now + 5_000, done[-1] + 1_000 if done else 0)
        returns = now + 1_000
        if number >= holds:
            returns = max(returns, done[number - holds] + 700)
        events += [launch(number, now, returns), work(f"k{number}", number, start, start + 10_000)]
        done.append(start + 10_000)
        now = returns + 1_000
    return events


def only_a_script() -> list[Event]:
    """A launch and its kernel in a second of which the profiler saw nothing else."""
    return [
        launch(1, 0, 10_000),
        work("a", 1, 15_000, 20_000),
        launch(2, 10**9, 10**9 + 10_000),
        work("b", 2, 10**9 + 15_000, 10**9 + 20_000),
    ]
