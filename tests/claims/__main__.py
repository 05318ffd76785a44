"""``python -m tests.claims [part of a name ...]``: what is false, or what nothing recomputes."""

import sys
from collections import Counter

from hta_widgets.errors import HtaWidgetsError
from tests.claims.checking import check_job
from tests.claims.recordings import EXAMPLES, SHARED, path_of, why_not_checked


def main(parts: list[str]) -> None:
    """Print the faults of all recordings whose name holds one of these parts; default all."""
    kinds: Counter[str] = Counter()
    for name in [*EXAMPLES, *SHARED]:
        if parts and not any(part in name for part in parts):
            continue
        if why := why_not_checked(name):
            sys.stdout.write(f"{name}: not checked: {why}\n")
            continue
        try:
            faults = check_job(path_of(name))
        except HtaWidgetsError as error:
            sys.stdout.write(f"{name}: not opened: {error}\n")
            continue
        for fault in faults:
            kinds[fault.measure or "prose"] += 1
            sys.stdout.write(f"{name}: {fault}\n")
    sys.stdout.write(f"{sum(kinds.values())} faults: {dict(kinds.most_common())}\n")


main(sys.argv[1:])
