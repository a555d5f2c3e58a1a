"""LIKE patterns: `%` any text, `_` one character, an escape before `%`, `_` or itself for the plain character.

The text between two `%` is a piece. Pieces are laid leftmost first, which is right because a piece that fits earlier
leaves more room for the rest; so the time is bounded by text x pattern and nothing backtracks.
"""

from dataclasses import dataclass
from functools import lru_cache

from mercast.content.errors import ContentError

ANY_TEXT, ANY_CHARACTER = object(), object()


@dataclass(frozen=True, slots=True)
class Piece:
    """A run without `%`. `literals` are its plain stretches with their places; the rest is `_`."""

    length: int
    literals: tuple[tuple[int, str], ...]

    def fits(self, text: str, at: int) -> bool:
        return all(text.startswith(literal, at + place) for place, literal in self.literals)

    def find(self, text: str, start: int, end: int) -> int:
        """The first place in text[start:end] where the whole piece lies, or -1."""
        if len(self.literals) > 1:
            return self._shift_and(text, start, end)
        if not self.literals:
            return start if start + self.length <= end else -1
        place, literal = self.literals[0]
        at = text.find(literal, start + place, end)
        return at - place if at >= 0 and at - place + self.length <= end else -1

    def _shift_and(self, text: str, start: int, end: int) -> int:
        """Bit k of `fitting` says that the last k + 1 characters read fit the piece's first k + 1: one step for each
        character of the text, however the piece repeats itself."""
        anywhere = (1 << self.length) - 1
        for place, literal in self.literals:
            anywhere &= ~(((1 << len(literal)) - 1) << place)
        fits_at: dict[str, int] = {}
        for place, literal in self.literals:
            for offset, character in enumerate(literal):
                fits_at[character] = fits_at.get(character, anywhere) | 1 << place + offset
        fitting, whole = 0, 1 << self.length - 1
        for at in range(start, end):
            fitting = (fitting << 1 | 1) & fits_at.get(text[at], anywhere)
            if fitting & whole:
                return at - self.length + 1
        return -1


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A compiled pattern: its pieces; the first lies at the start of the text, the last at its end."""

    pieces: tuple[Piece, ...]

    @property
    def literal(self) -> str | None:
        """The only text that matches, if there is just one."""
        return self.prefix if len(self.pieces) == 1 and self.pieces[0].length == len(self.prefix) else None

    @property
    def prefix(self) -> str:
        """The plain text that every match begins with."""
        literals = self.pieces[0].literals
        return literals[0][1] if literals and literals[0][0] == 0 else ""

    @property
    def is_prefix(self) -> bool:
        """Whether the pattern asks for its prefix and nothing else."""
        return len(self.pieces) == 2 and self.pieces[1].length == 0 and self.pieces[0].length == len(self.prefix)  # noqa: PLR2004

    def matches(self, text: str) -> bool:
        first, last = self.pieces[0], self.pieces[-1]
        if len(self.pieces) == 1:
            return len(text) == first.length and first.fits(text, 0)
        start, end = first.length, len(text) - last.length
        if start > end or not first.fits(text, 0) or not last.fits(text, end):
            return False
        for piece in self.pieces[1:-1]:
            at = piece.find(text, start, end)
            if at < 0:
                return False
            start = at + piece.length
        return True


@lru_cache(maxsize=4096)
def compile_like(pattern: str, escape: str = "\\") -> LikePattern:
    """ContentError if an escape stands before a character that needs none, or at the end."""
    runs: list[list[str | object]] = [[]]
    for symbol in _symbols(pattern, escape):
        if symbol is not ANY_TEXT:
            runs[-1].append(symbol)
        elif len(runs) == 1 or runs[-1]:  # "%%" means "%"
            runs.append([])
    return LikePattern(tuple(_piece(run) for run in runs))


def _symbols(pattern: str, escape: str) -> list[str | object]:
    symbols: list[str | object] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            escaped = next(characters, "")
            if escaped not in ("%", "_", escape):
                found = f"it stands before {escaped!r}" if escaped else "it stands at the end"
                raise ContentError(f"the escape {escape} goes before %, _ or another {escape}, but {found}")
            symbols.append(escaped)
        else:
            symbols.append({"%": ANY_TEXT, "_": ANY_CHARACTER}.get(character, character))
    return symbols


def _piece(run: list[str | object]) -> Piece:
    literals: list[tuple[int, str]] = []
    for place, symbol in enumerate(run):
        if not isinstance(symbol, str):
            continue
        if literals and literals[-1][0] + len(literals[-1][1]) == place:
            literals[-1] = (literals[-1][0], literals[-1][1] + symbol)
        else:
            literals.append((place, symbol))
    return Piece(len(run), tuple(literals))
