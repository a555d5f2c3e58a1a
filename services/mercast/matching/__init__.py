"""Which filters an event satisfies, fast. Pure."""

from mercast.matching.index import Index
from mercast.matching.scan import Scan
from mercast.matching.typed import Matcher, TypedMatcher

__all__ = ["Index", "Matcher", "Scan", "TypedMatcher"]
