"""Algorithm and bus bandwidth of collectives, as nccl-tests defines them."""

from __future__ import annotations

import numpy as np
import pandas as pd

from hta_widgets.analysis.communication.arrivals import LOOSE

# How often each byte of a message crosses a rank's link: of n ranks, (a * n + b) / n times.
_CROSSINGS = {
    "allreduce": (2, -2),
    "allgather": (1, -1),
    "reduce_scatter": (1, -1),
    "all_to_all": (1, -1),
    "gather": (1, -1),
    "scatter": (1, -1),
    "broadcast": (1, 0),
    "reduce": (1, 0),
    "send": (1, 0),
    "recv": (1, 0),
}
_UNKNOWN = (np.nan, np.nan)


def bandwidths(frame: pd.DataFrame) -> pd.DataFrame:
    """How long each collective transfers, and the bandwidths that follow.

    The last rank to arrive does not wait, so the shortest duration of a collective is its transfer; no clock
    is needed. Where not all of its ranks are matched, or a rank may leave early (broadcast, reduce, gather,
    scatter), what is known is only that the transfer takes no longer: the bandwidth is at least this.

    Source: nccl-tests, doc/PERFORMANCE.md. Algorithm bandwidth is the size S of the message by the time; bus
    bandwidth is that times 2(n-1)/n for all-reduce, (n-1)/n for all-gather, reduce-scatter, all-to-all,
    gather and scatter, and 1 for broadcast, reduce, send and receive, where n ranks take part. S is what the
    whole operation gathers or scatters: the larger of what goes in and what comes out.

    Args:
        frame: columns collective, bytes, group_size, match, match_key, match_ranks, dur_ns.

    Returns:
        With the index of the frame: transfer_ns (int64), algbw_gbps, busbw_gbps (float64, 1e9 bytes per s;
        NaN without a size, of a group of one, or of an operation that the definition does not know),
        bandwidth_is (str: "exact", "at least", NA where algbw_gbps is NaN).
    """
    match, dur = frame["match"].to_numpy(np.int64, na_value=-1), frame["dur_ns"].to_numpy(np.int64)
    together = (match >= 0) & ~frame["collective"].isin(LOOSE).to_numpy(np.bool_)
    shortest = np.full(int(match.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(shortest, match[together], dur[together])
    transfer = dur.copy()
    transfer[together] = shortest[match[together]]
    size, matched, volume = (
        frame[name].to_numpy(np.float64, na_value=np.nan) for name in ("group_size", "match_ranks", "bytes")
    )
    complete = together & (matched == np.where(frame["match_key"].eq("pair"), 2, size))
    operation, names = pd.factorize(frame["collective"])
    a, b = np.array([_CROSSINGS.get(name, _UNKNOWN) for name in [*names, ""]], np.float64).T[:, operation]
    known = ~np.isnan(a) & (transfer > 0) & (size != 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        algorithm = volume / np.where(known, transfer, np.nan)
        # The size of the group does not matter where it has no part in the factor.
        factor = a + np.where(b != 0, b / size, 0.0)
    word = pd.Series(np.where(complete, "exact", "at least"), frame.index, "str")
    return pd.DataFrame(
        {
            "transfer_ns": transfer,
            "algbw_gbps": algorithm,
            "busbw_gbps": algorithm * factor,
            "bandwidth_is": word.where(~np.isnan(algorithm)),
        },
        frame.index,
    )
