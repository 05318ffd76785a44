"""What a file states about itself, checked where it is read.

Anyone can write a file's metadata, and analyses use it as numbers, keys and names. A value that cannot be
what it stands for is left out, and the file's health says so: every reader of `EventTable.metadata` may rely
on the types below.
"""

from __future__ import annotations

from typing import Any, Final

MOST_RANKS: Final = 1 << 31
"""Ranks are below: NCCL and Gloo number them with 32 bits."""
_TOLD: Final = 3
_SHOWN: Final = 40


def whole_number(value: object) -> int | None:
    """The integer that a value is, or spells in ASCII digits; None for anything else."""
    if isinstance(value, str):
        text = value.strip()
        return int(text) if len(text) < 20 and text.isascii() and text.isdigit() else None
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def unusable(metadata: dict[str, Any]) -> list[str]:
    """Remove the values that are not what they stand for, and the nulls in their place; what they were."""
    left_out: list[str] = []

    def check(holder: dict[str, Any], key: str, usable: bool, what: str, where: str = "") -> None:
        if key in holder and not usable:
            value = holder.pop(key)
            if value is not None:  # a null states nothing
                left_out.append(f"{where}{key} is no {what}: {_brief(value)}")

    base = whole_number(metadata.get("baseTimeNanoseconds"))
    check(metadata, "baseTimeNanoseconds", base is not None and abs(base) < 1 << 63, "time")
    check(metadata, "distributedInfo", isinstance(metadata.get("distributedInfo"), dict), "object")
    check(metadata, "deviceProperties", isinstance(metadata.get("deviceProperties"), list), "list")
    info = metadata.get("distributedInfo", {})
    for key, least, what in (("rank", 0, "rank"), ("world_size", 1, "number of ranks")):
        number = whole_number(info.get(key))
        usable = number is not None and least <= number < MOST_RANKS
        check(info, key, usable, what, "distributedInfo.")
    check(info, "pg_config", isinstance(info.get("pg_config"), list), "list", "distributedInfo.")
    for at, device in enumerate(metadata.get("deviceProperties", [])):
        if isinstance(device, dict):
            number, where = whole_number(device.get("id")), f"deviceProperties[{at}]."
            check(device, "id", number is not None and abs(number) < 1 << 31, "number of a device", where)
            check(device, "name", isinstance(device.get("name"), str), "text", where)
    return left_out


def in_words(left_out: list[str]) -> str:
    """The first of what `unusable` removed, as one text."""
    more = len(left_out) - _TOLD
    return "; ".join(left_out[:_TOLD]) + (f"; and {more:,} more" if more > 0 else "") + ": not used"


def _brief(value: object) -> str:
    """The beginning of a value; of a long number not even that, for writing it takes quadratic time."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a number of {value.bit_length():,} bits"
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]} ... ({len(text):,} characters)"
