"""`mercast overlay`: the overlay as a broker sees it, and what its tables hold."""

import json as json_module
import sys
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mercast.broker.addresses import ADMIN_PORT, Address
from mercast.cli.admin_port import AdminError, NotOurs, fetch, parse_admin, read_token

_ABSENT = "–"


def overlay(
    *,
    admin: str = f"127.0.0.1:{ADMIN_PORT}",
    admin_token: Annotated[str, Parameter(env_var="MERCAST_ADMIN_TOKEN")] = "",
    json: bool = False,
) -> None:
    """Show the overlay as a broker sees it: brokers, links, and what its tables hold.

    Exit status: 0 if the broker answered, 1 if not.

    Parameters
    ----------
    admin
        The admin address of the broker; by TLS, https://host:port, with the CA that MERCAST_CA names.
    admin_token
        What its admin port asks for: a file that holds it (with a slash in its path), or the token itself.
    json
        Print what the broker answered, as JSON.
    """
    try:
        address = parse_admin(admin)
    except ValueError as error:
        sys.exit(f"mercast overlay: --admin: {error}")
    try:
        admin_token = read_token(admin_token)
    except ValueError as error:
        sys.exit(f"mercast overlay: --admin-token: {error}")
    answers = {path: _ask(address, path, admin_token) for path in ("overlay", "tables")}
    if json:
        sys.stdout.write(json_module.dumps(answers, indent=2) + "\n")
    else:
        show(answers["overlay"], answers["tables"])


def _ask(address: Address, path: str, token: str) -> dict[str, Any]:
    try:
        found = json_module.loads(fetch(address, path, token))
        if not isinstance(found, dict) or "broker" not in found:
            raise NotOurs(address)
    except ValueError:
        sys.exit(str(NotOurs(address)))
    except AdminError as error:
        sys.exit(str(error))
    return found


def show(seen: dict[str, Any], tables: dict[str, Any]) -> None:
    console = Console(highlight=False, soft_wrap=True)
    me = seen["broker"]
    state = "ready" if me["ready"] else f"not ready: {me['reason']}"
    console.print(
        f"broker {me['id']} of cluster {me['cluster']}: {me['strategy']}, version {me['version']}, "
        f"up for {duration(me['uptime_seconds'])}, {state}",
        markup=False,
    )
    others = seen.get("others", [])  # which brokers of earlier builds do not tell
    if others:
        clusters = ", ".join(f"{one['cluster']} ({one['number']})" for one in others)
        carried = "; ".join(f"{key} {', '.join(me[key]) or 'nothing'}" for key in ("exports", "imports"))
        console.print(f"edge to {clusters}; {carried}", markup=False)
    for clash in seen.get("clashes", []):
        console.print(f"WRONG: {clash}", markup=False)
    for view in (seen, *others):
        title = f" of cluster {view.get('cluster', me['cluster'])}" if others else ""
        for table in (_brokers(me["id"], view, title), _links(me["id"], view, title), _edges(view, title)):
            if table.row_count:
                console.print()
                console.print(table)
    console.print()
    console.print(_held(tables))


def _brokers(me: int, seen: dict[str, Any], title: str) -> Table:
    """Those with a record, and members that nothing has been heard of."""
    members = {member["id"]: member for member in seen["members"]}
    records = {one["id"]: one for one in seen["overlay"]["brokers"]}
    table = _table(f"brokers{title}", "id", "clients", "peers", "cost", "next hop", "state")
    for who in sorted(members.keys() | records.keys()):
        member, record = members.get(who, {}), records.get(who, {})
        state = "no word of it" if not record else "reachable" if record["reachable"] else "out of reach"
        addresses = member.get("client_address"), member.get("peer_address")
        way = (None, None, "this broker") if who == me else (record.get("cost"), record.get("next_hop"), state)
        _add(table, who, *addresses, *way, dead=state != "reachable")
    return table


def _edges(seen: dict[str, Any], title: str) -> Table:
    """Who brings what from other clusters."""
    table = _table(f"edges{title}", "id", "also in", "advertisements brought", "subscriptions brought", "state")
    for one in seen.get("carried", []):
        reachable = one.get("reachable", True)  # which brokers of earlier builds do not tell
        brought = one["advertisements"], one["subscriptions"], "reachable" if reachable else "out of reach"
        _add(table, one["edge"], ", ".join(one["also_in"]), *brought, dead=not reachable)
    return table


def _links(me: int, seen: dict[str, Any], title: str) -> Table:
    own = {link["neighbour"]: link for link in seen["links"]}
    known = {tuple(link["between"]): link for link in seen["overlay"]["links"]}
    for neighbour, link in own.items():  # connected, but not in the records yet
        known.setdefault((min(me, neighbour), max(me, neighbour)), {"cost": link["cost"], "state": "coming up"})
    table = _table(f"links{title}", "between", "cost", "rtt", "clock offset", "queued", "state")
    for (one, other), link in sorted(known.items()):
        measured = own.get(other if one == me else one, {}) if me in (one, other) else {}
        rtt, offset = _ms(measured.get("rtt_ms")), _ms(measured.get("clock_offset_ms"))
        queued, state = _bytes(measured.get("queued_bytes")), link["state"]
        _add(table, f"{one} – {other}", link["cost"], rtt, offset, queued, state, dead=state != "up")
    return table


def _held(tables: dict[str, Any]) -> Table:
    counts = {**tables["counts"], **tables["tables"]}
    table = _table("held by this broker", *counts)
    _add(table, *counts.values())
    return table


def _table(title: str, *columns: str) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None, header_style="dim")
    for column in columns:
        table.add_column(column, no_wrap=True)
    return table


def _add(table: Table, *cells: Any, dead: bool = False) -> None:
    """Cells are plain text: rich would take an IPv6 address in brackets for a style."""
    texts = (Text(_ABSENT if cell in (None, "") else str(cell)) for cell in cells)
    table.add_row(*texts, style="red" if dead else None)


def _ms(value: float | None) -> str | None:
    return None if value is None else f"{value:.2f} ms"


def _bytes(value: int | None) -> str | None:
    return None if value is None else f"{value:,} B"


def duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s" if minutes else f"{rest} s"
