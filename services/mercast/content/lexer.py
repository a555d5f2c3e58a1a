"""Filter text to tokens. The pattern has no nested repetition, so it takes time linear in the text."""

import re
from collections.abc import Generator
from typing import NamedTuple

from mercast.content.errors import FilterError
from mercast.content.expression import KEYWORDS, NAME
from mercast.content.values import Value


class Token(NamedTuple):
    kind: str
    """`name`, `quoted`, `string`, `number`, `end`; a keyword or an operator is its own kind, in capitals."""
    text: str
    offset: int

    def __str__(self) -> str:
        match self.kind:
            case "end":
                return "the end of the filter"
            case "quoted":
                return f"{shortened(self.text)} (double quotes name an attribute)"
            case "name":
                return f"the name {shortened(self.text)}"
            case "string" | "number":
                return f"the {self.kind} {shortened(self.text)}"
        return shortened(self.text)

    @property
    def name(self) -> str:
        """The attribute that a `name` or `quoted` token names."""
        return self.text[1:-1].replace('""', '"') if self.kind == "quoted" else self.text


_TOKEN = re.compile(
    rf"""
      (?P<space>  \s+ )
    | (?P<number> (?: [0-9]+ (?: \.[0-9]* )? | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? (?![\w.]) )
    | (?P<name>   {NAME} )
    | (?P<string> '(?:[^']|'')*' )
    | (?P<quoted> "(?:[^"]|"")*" )
    | (?P<mark>   [(),+-] )
    | (?P<symbol> <=|>=|<>|!=|[=<>] )
    """,
    re.VERBOSE,
)

_SHOWN = 40

# Slips from other languages, the longer first: what was typed and what to type here.
_SLIPS = {
    "==": "equality is written with one =",
    "=<": "write <=",
    "=>": "write >=",
    "&&": "write AND",
    "||": "write OR",
    "!": "write NOT, or <> for unequal",
    "&": "write AND",
    "|": "write OR",
    "~": "for patterns write LIKE",
    "`": "a name with odd characters goes in double quotes",
    "“": "a string goes in straight single quotes, 'like this'",
    "”": "a string goes in straight single quotes, 'like this'",
    "‘": "a string goes in straight single quotes, 'like this'",
    "’": "a string goes in straight single quotes, 'like this'",
    "*": "arithmetic is not part of filters: compare an attribute with a value",
    "/": "arithmetic is not part of filters: compare an attribute with a value",
    ";": "a filter is one condition and needs no semicolon",
    "[": "a list goes in parentheses: IN (1, 2)",
    "{": "a list goes in parentheses: IN (1, 2)",
}


def shortened(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def tokens(text: str) -> Generator[Token, int | None, None]:
    """The tokens of a filter, the last of kind `end`. Sent an offset, it goes on from there."""
    offset = 0
    while offset < len(text):
        found = _TOKEN.match(text, offset)
        if found is None or found.lastgroup == "symbol":
            slip = slip_at(text, offset)
            if found is None or slip:
                raise _stray(text, offset, slip)
        if found.lastgroup != "space":
            further = yield Token(_kind(found), found.group(), offset)
            if further is not None:
                offset = further
                continue
        offset = found.end()
    yield Token("end", "", len(text))


_STRINGS = re.compile(r"\(\s*+'[^']*+'(?:\s*+,\s*+'[^']*+')*+\s*+\)")
_INTS = re.compile(r"\(\s*+-?[0-9]{1,18}+(?:\s*+,\s*+-?[0-9]{1,18}+)*+\s*+\)")
_STRING = re.compile("'([^']*)'")


def plain_list(text: str, offset: int) -> tuple[list[Value], int] | None:
    """The values of a list of strings without quotes inside, or of ints, that begins here, and where it ends.

    None of any other. Token by token, the longest list takes a hundred times as long.
    """
    found = _STRINGS.match(text, offset)
    if found is not None:
        return list(_STRING.findall(found.group())), found.end()
    found = _INTS.match(text, offset)
    return None if found is None else (list(map(int, found.group()[1:-1].split(","))), found.end())


def _kind(found: re.Match[str]) -> str:
    group, text = found.lastgroup or "", found.group()
    if group == "name":
        keyword = text.upper() if text.isascii() else ""
        return keyword if keyword in KEYWORDS else "name"
    if group == "symbol":
        return "<>" if text == "!=" else text
    return text if group == "mark" else group


def slip_at(text: str, offset: int) -> str:
    """The slip that begins here, or nothing. `!=` is no slip: SQL writes unequal both ways."""
    for slip in _SLIPS:
        if text.startswith(slip, offset) and not text.startswith("!=", offset):
            return slip
    return ""


def _stray(text: str, offset: int, slip: str) -> FilterError:
    character = text[offset]
    if slip:
        return FilterError.at(text, offset, f"“{slip}”", "a part of a filter", _SLIPS[slip])
    if character in "'\"":
        mark = "single" if character == "'" else "double"
        twice = f"a {mark} quote inside is written twice"
        return FilterError.at(text, offset, f"a {mark} quote that is never closed", f"a closing {character}", twice)
    if character.isdigit() or character == ".":
        end = re.compile(r"[\w.]+").match(text, offset)
        found = shortened(end.group() if end else character)
        return FilterError.at(text, offset, f"“{found}”", "a number such as 10, 2.5 or 1e-3")
    return FilterError.at(text, offset, f"the character {character!r}", "a part of a filter")
