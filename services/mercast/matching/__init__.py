"""Which filters an event satisfies, fast. Pure."""

from mercast.matching.index import Index
from mercast.matching.scan import Scan

__all__ = ["Index", "Scan"]
