"""What one client may do, by its token. Each decision is made once while types and rules stay the same."""

from collections.abc import Callable

from mercast.protocol.stimuli import Advertise, Declare, Stimulus, Subscribe
from mercast.routing.declared import Declared
from mercast.security.tokens import Token

_MOST = 1024
"""Decisions that are remembered for a client: it may make up any number of types."""


class Guard:
    def __init__(self, token: Token, declared: Callable[[], Declared]) -> None:
        self.token = token
        self._declared = declared
        self._statements = 0
        self._publish: dict[str, str] = {}

    def look(self) -> None:
        """Before requests are judged: forgets what was decided by another tree of types. Statements only grow."""
        statements = len(self._declared().statements)
        if statements != self._statements:
            self._statements = statements
            self._publish.clear()

    def publish(self, type: str) -> str:
        """Why not; empty if it may."""
        why = self._publish.get(type)
        if why is None:
            if len(self._publish) >= _MOST:
                self._publish.clear()
            against = self.token.publish.against_publishing(self._declared().types.lineage(type))
            why = self._publish[type] = self._said("publish", type, against)
        return why

    def subscribe(self, type: str | None) -> str:
        types, rules = self._declared().types, self.token.subscribe
        if type is None:
            return self._said("subscribe to", "any type", rules.against_subscribing(None, ()))
        return self._said("subscribe to", type, rules.against_subscribing(types.lineage(type), types.below(type)))

    def declare(self, type: str, parent: str | None) -> str:
        """As publishing both. Not by its ancestors: whoever could choose these could make any type their own."""
        why = self._said("declare", type, self.token.publish.against_publishing((type,)))
        return why or (self.publish(parent) if parent is not None else "")

    def against(self, request: Stimulus) -> str:
        """Why not to do this; empty if it may be done."""
        match request:
            case Subscribe():
                return self.subscribe(request.type)
            case Advertise():
                return self.publish(request.type)
            case Declare():
                return self.declare(request.declaration.name, request.declaration.parent)
        return ""

    def _said(self, verb: str, what: str, why: str) -> str:
        return why and f"token {self.token.name!r} may not {verb} {what}: {why}"
