"""Which filters an event satisfies, fast. Pure."""

from mercast.matching.index import Index, prepare
from mercast.matching.scan import Scan
from mercast.matching.typed import Content, Lineage, Matcher, TypedMatcher, Work

__all__ = ["Content", "Index", "Lineage", "Matcher", "Scan", "TypedMatcher", "Work", "prepare"]
