"""Prints how right the verdicts on the real recordings are: ``python -m tests.verdicts``."""

from __future__ import annotations

from collections import Counter

from tests.verdicts.experts import CONCLUSIONS, OF_OUR_OWN, held_against, own_held_against
from tests.verdicts.test_readings import READINGS
from tests.verdicts.test_verdicts import judge


def main() -> None:
    judged = {name: judge(name) for name in sorted(READINGS)}
    judged |= {f"recordings/{name}": held_against(name) for name in CONCLUSIONS}
    judged |= {f"examples/{name}": own_held_against(name) for name in OF_OUR_OWN}
    for name, found in judged.items():
        print(f"{found.word:7} {name}: {found.headline}")
        for problem in (*found.wrong, *(f"silent on {cause}" for cause in (*found.silent, *found.partly))):
            print(f"          {problem}")
    count = Counter(found.word for found in judged.values())
    print(", ".join(f"{count[word]} {word}" for word in ("right", "partly", "wrong", "silent")))


if __name__ == "__main__":
    main()
