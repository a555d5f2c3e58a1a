"""A scenario is a text: commands at the left margin, below each, indented, what came of it; '#' starts a comment.

To play one is to write it again with what came of each command this time. It passes if nothing has changed: so the
whole output is compared, and a person who changes the code on purpose writes the new text with REWRITE=1 and reads the
difference.
"""

import difflib
from collections.abc import Callable

from mercast.content.errors import ContentError

INDENT = "  "


class CommandError(Exception):
    """A command that cannot be understood or carried out: what is wrong, and what would be right."""


class ScenarioError(Exception):
    """A mistake in a scenario, with its file and line."""

    def __init__(self, file: str, number: int, line: str, reason: object) -> None:
        super().__init__(f"{file}:{number}: {reason}\n{INDENT}{line.strip()}")


def played(file: str, text: str, do: Callable[[str], list[str]]) -> str:
    """The text with the output of this time; `do` carries out a command and answers what came of it."""
    lines, below_command = [], False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(tuple(" \t")) and line.strip():
            if not below_command:
                raise ScenarioError(file, number, line, "output stands directly below its command; this has none")
            continue
        lines.append(line.rstrip())
        below_command = bool(line.strip()) and not line.startswith("#")
        if below_command:
            lines += [INDENT + said for said in _carried_out(file, number, line, do)]
    return "".join(f"{line}\n" for line in lines)


def _carried_out(file: str, number: int, line: str, do: Callable[[str], list[str]]) -> list[str]:
    try:
        return [part for said in do(line.strip()) for part in said.splitlines()]
    except (CommandError, ContentError) as mistake:
        raise ScenarioError(file, number, line, mistake) from mistake


def difference(file: str, written: str, now: str) -> str:
    """Line by line: '-' is written and did not happen, '+' happened and is not written. Empty if they are the same."""
    changes = difflib.unified_diff(
        written.splitlines(), now.splitlines(), f"{file} as it is written", "as it was played", n=4, lineterm=""
    )
    return "\n".join(changes)
