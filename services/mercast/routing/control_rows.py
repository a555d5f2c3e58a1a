"""Control state as rows of the taps: all that is so now, for those who did not hear of each change."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from mercast.content.types import Declaration
from mercast.protocol.rows import Advertised, ControlRow, Declared, Linked, Snapshot, Subscribed

if TYPE_CHECKING:
    from mercast.routing.core import Core


def declared_row(declaration: Declaration) -> Declared:
    kinds: dict[str, bool | int | float | str] = {name: kind.value for name, kind in declaration.attributes.items()}
    return Declared(declaration.name, declaration.parent, kinds)


def snapshot(core: "Core") -> list[ControlRow]:
    rows = list(_all(core))
    return [Snapshot(False, len(rows)), *rows, Snapshot(True, len(rows))]


def _all(core: "Core") -> Iterator[ControlRow]:
    for declaration in core.declared.statements.values():
        yield declared_row(declaration)
    for cluster in core.clusters:
        for neighbour, cost in cluster.state.mine.links:
            yield Linked(cluster.address(neighbour), cost)
    for local, advertisement in core.clients.advertisements.items():
        yield Advertised(*local, advertisement.type, str(advertisement.filter))
    for local, subscription in core.clients.subscriptions.items():
        echo, settled = local not in core.clients.without_echo, core.settled_at.get(local)
        yield Subscribed(*local, subscription.type, str(subscription.filter), echo, settled)
