"""Which filters an event satisfies, fast. Pure."""

from mercast.matching.index import Index
from mercast.matching.scan import Scan
from mercast.matching.typed import Matcher, TypedMatcher, Work

__all__ = ["Index", "Matcher", "Scan", "TypedMatcher", "Work"]
