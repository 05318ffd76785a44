"""What experts of a model take on each rank, and how many tokens ranks of a server have."""

from __future__ import annotations

from statistics import median

from tests.claims.job import Job, PlainRank
from tests.claims.measures.idle import the_rank
from tests.claims.measures.serving import judged_steps
from tests.claims.measures.serving_work import among_experts
from tests.claims.registry import Stated, check, close


def of_experts(job: Job, stated: Stated) -> list[tuple[int, ...]]:
    """What experts take in each step, on each rank."""
    by_rank = [
        [
            sum(
                each.dur
                for each in rank.kernels
                if each.number in among_experts(rank)
                if start <= each.start < end
            )
            for start, end in rank.windows
        ]
        for rank in job.of(stated.ranks)
    ]
    return list(zip(*by_rank, strict=True))


@check("experts_longest")
def experts_longest(job: Job, stated: Stated) -> str:
    """On the slowest rank of each step."""
    found = [max(each) for each in of_experts(job, stated)]
    return close(stated, sum(found) / len(found), 0.01, 1_000.0)


@check("experts_mean")
def experts_mean(job: Job, stated: Stated) -> str:
    """On average."""
    found = [sum(each) / len(each) for each in of_experts(job, stated)]
    return close(stated, sum(found) / len(found), 0.01, 1_000.0)


@check("rank_with_most_experts")
def rank_with_most_experts(job: Job, stated: Stated) -> str:
    """Its experts take most."""
    sums = [sum(each) for each in zip(*of_experts(job, stated), strict=True)]
    most = job.of(stated.ranks)[sums.index(max(sums))]
    return "" if stated.value == (most.number,) else f"it is rank {most.number}"


@check("uneven_experts")
def uneven_experts(job: Job, stated: Stated) -> str:
    """By how much the slowest rank takes longer than the average."""
    found = of_experts(job, stated)
    lost = sum(max(each) - sum(each) / len(each) for each in found)
    ranks = job.of(stated.ranks)
    if stated.unit == "%":
        return close(stated, 100.0 * lost * len(ranks) / sum(rank.judged_ns for rank in ranks))
    return close(stated, lost / len(found) if stated.unit == "ns/step" else lost, 0.01, 1_000.0)


def taken(rank: PlainRank) -> tuple[int, int]:
    """What kernels of experts take in the judged time, and all others."""
    work = [each for each in rank.kernels if any(begin <= each.start < end for begin, end in rank.windows)]
    mine = sum(each.dur for each in work if each.number in among_experts(rank))
    return mine, sum(each.dur for each in work) - mine


@check("experts_times")
def experts_times(job: Job, stated: Stated) -> str:
    """Experts take so much longer than usual, and little else does."""
    own, others = (
        [taken(rank) for rank in job.ranks.values() if (rank.number in stated.ranks) is mine]
        for mine in (True, False)
    )
    usual, rest = (median(each[at] for each in others) for at in (0, 1))
    longer = sum(each[1] for each in own) / len(own) / rest - 1
    truth = sum(each[0] for each in own) / len(own) / usual
    if longer > 0.25 * (truth - 1):
        return f"all else takes {longer:.1%} longer"
    return close(stated, truth, 0.02, 0.01)


@check("tokens_per_step")
def tokens_per_step(job: Job, stated: Stated) -> str:
    """On average over the steps of these ranks."""
    of_ranks = [[step.tokens for step in judged_steps(rank)] for rank in job.of(stated.ranks)]
    means = [sum(tokens) / len(tokens) for tokens in of_ranks]
    return close(stated, sum(means) / len(means), 0.02, 0.01)


@check("steps_without_requests")
def steps_without_requests(job: Job, stated: Stated) -> str:
    """So many of its judged steps have none."""
    rank = the_rank(job, stated)
    return close(stated, sum(not step.requests for step in judged_steps(rank)), 0.0)


@check("steps_of_server")
def steps_of_server(job: Job, stated: Stated) -> str:
    """So many steps of it are judged."""
    return close(stated, len(judged_steps(the_rank(job, stated))), 0.0)


@check("most_without_requests")
def most_without_requests(job: Job, stated: Stated) -> str:
    """No other rank of these has more steps without requests."""
    empty = {
        rank.number: sum(not step.requests for step in judged_steps(rank)) for rank in job.of(stated.ranks)
    }
    return "" if empty[stated.value[0]] == max(empty.values()) else f"they have {empty}"
