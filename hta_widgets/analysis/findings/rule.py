"""A rule: one thing that may cost a job time, how it is found, and all that is known of it beforehand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from hta_widgets.analysis.core.claim import Said
from hta_widgets.analysis.findings.finding import Finding, LostAs
from hta_widgets.analysis.replay.edit import Edit
from hta_widgets.trace.rank_trace import RankTrace
from hta_widgets.trace.records.vetoes import Claim as VetoedClaim

if TYPE_CHECKING:
    from hta_widgets.analysis.findings.inputs import Inputs

MAIN_QUESTION = "what devices do"
IDLE_QUESTION = "why devices are idle"
SAVING_QUESTION = "what changes save"
HOST_QUESTION = "what the host does"

_CLAIM_OF_QUESTION: Final[dict[str, VetoedClaim]] = {
    IDLE_QUESTION: "idle_causes",
    HOST_QUESTION: "steps",  # of the claims the one that needs no device events
    "how far the host is ahead": "idle_causes",
    "whom the ranks wait for": "ranks",
    "whether a rank is slow": "ranks",
    "which steps are unusual": "steps",
    "whether devices slow down": "steps",
}
"""The class of claims that answers a question; of any other it is efficiency."""

FAULTS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What a rule raises only by a fault of its own: it costs the answer of that rule, not the others."""

Role = Literal["cause", "work", "doubt", "aside", "recording", "memory"]


GETS_AHEAD = "That is more than the cost: further ahead of the device, the host is late less often later on."
"""Why a change that takes host time saves more than what the device waits for it."""


WAITS_FOR_LATE: Final = "the late rank {rank}"
"""The cause of ranks that wait for another, be it on devices or in threads of the host."""


def always(inputs: Inputs) -> bool:
    """For rules that can find something in any recording with device work."""
    return True


def never(inputs: Inputs) -> bool:
    """For rules about what is no fault: that they find nothing is not worth a word."""
    return False


def several_ranks(inputs: Inputs) -> bool:
    """For rules that compare ranks."""
    return len(inputs.temporal) > 1


@dataclass(frozen=True)
class Change:
    """A change of the program, as edits of a replay."""

    label: Said  # how a sentence names it: "without the data loader's time"
    edits_of: Callable[[RankTrace], list[Edit]]  # the edits that stand for it on a rank
    beyond_cost: str = ""  # why it may save more than the cost, as a sentence
    # why it is unknown what can be saved where the replay saves nothing; "": then nothing is
    without_effect: str = ""
    # edits that are made before, since other findings are about their effect; `first_label` names them
    first: Callable[[Inputs, int], list[Edit]] | None = None
    first_label: str = ""
    # what to add to the label where no more than the cost counts as saved; "" where all counts
    limit: Callable[[Inputs, Finding, int], str] | None = None


@dataclass(frozen=True)
class Rule:
    """One topic: the question, how to answer it, and what follows from the answer."""

    topic: str  # its identifier
    question: str  # what is unknown where the data for it is missing
    title: str  # a noun phrase that can be the subject of "costs 5 % of the time"
    # finds it, or None; raises `MissingDataError` where the recording cannot tell
    judge: Callable[[Inputs], Finding | None]
    # a "cause" of lost time; "work", which is what devices are for; a "doubt" about the class of some work;
    # an "aside" that costs nothing; what is said of the "recording" instead of anything about its time; or of
    # its "memory"
    role: Role = "cause"
    label: str = ""  # over its part of the bar, in four words at most; "" is the title
    # in a headline, behind a colon or "and"; "" is the title. In both, {rank} is the finding's.
    cause: str = ""
    better: str = ""  # in a headline, with what the time could be shorter: says more than "without" the cause
    of_host: bool = False  # devices that idle for it most of the time are host-bound
    lost_as: LostAs = "compute"  # the class of the time that it costs
    general: bool = False  # it says what kind of time is lost; a narrower rule may say why
    says_why: bool = True  # of a late rank it says what that does meanwhile, not only that it is late
    applies: Callable[[Inputs], bool] = always  # whether finding nothing is worth a word
    change: Change | None = None  # what takes its cost away; a finding may name another one
    no_change: str = ""  # why no change is replayed
    # ranks that wait for a "late" one, or for several "in turn", or the "reason" why one is late: only a
    # replay of all ranks tells what that costs
    among_ranks: Literal["", "late", "in turn", "reason"] = ""
    # what may go wrong with what is suggested, and what it takes
    risk: str = ""
    needs: str = ""
    wrong_if: str = ""  # what would make the finding false
    headline: str = ""  # the verdict in one sentence, where it is not built from cost and saving
    leads: bool = False  # the answer in one sentence begins with what it finds
    beside: bool = False  # what it finds stands beside the headline, and says more than the verdict
    # what is mostly lost in its steps, and less than they lose, is no cause of its own
    of_some_steps: bool = False
    no_reason: bool = False  # what is lost is known, and not why
    once: bool = False  # it passes, and is no part of the steady state
    mistake: bool = False  # of the program: whatever it costs, it stands beneath the headline
    unjudged: bool = False  # it is about what of the recording is not judged

    @property
    def name(self) -> str:
        """What it finds, in a list and without a rank."""
        return self.label if self.label and "{rank}" not in self.label else self.title.rstrip(",")

    @property
    def waits_for_late(self) -> bool:
        """It is about ranks that wait for a late one, be it on devices or in threads of the host."""
        return self.cause == WAITS_FOR_LATE

    @property
    def claim(self) -> VetoedClaim | None:
        """The class of claims that it makes, which records may forbid; None about memory, and recordings."""
        if self.role in ("memory", "recording"):
            return None
        return _CLAIM_OF_QUESTION.get(self.question, "efficiency")


idle_rule: Final[Callable[..., Rule]] = partial(Rule, question=IDLE_QUESTION, lost_as="idle")
"""A rule about why devices are idle."""


@dataclass(frozen=True)
class Found:
    """What a rule found."""

    rule: Rule
    finding: Finding
