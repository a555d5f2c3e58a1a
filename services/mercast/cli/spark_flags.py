"""What the commands that run Spark have in common."""

import sys
from collections.abc import Callable
from typing import NoReturn


def pairs(flag: str, given: list[str], stop: Callable[[str], NoReturn]) -> dict[str, str]:
    """Settings that are given as KEY=VALUE."""
    for pair in given:
        if "=" not in pair.strip("="):
            stop(f"{flag} {pair}: give it as KEY=VALUE")
    return dict(pair.split("=", 1) for pair in given)


def tell(what: str) -> None:
    """That something takes a while."""
    sys.stderr.write(f"{what} …\n")
