"""`mercast cert`: certificates for a first secure set-up."""

import re
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from mercast.security.certificates import CA, DAYS, make_ca, make_certificate
from mercast.security.errors import SecurityError
from mercast.security.identity import Identity, Role

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_HERE = ("localhost", "127.0.0.1", "::1")


def cert(
    name: str,
    /,
    *,
    role: Role = "broker",
    cluster: str = "default",
    joins: Annotated[list[str] | None, Parameter(negative=())] = None,
    host: Annotated[list[str] | None, Parameter(negative=())] = None,
    days: int = DAYS,
    folder: Path = Path("certs"),
    renew: bool = False,
) -> None:
    """Make a certificate, such as: mercast cert broker-1 --host broker-1.example.org --folder certs

    The first time it makes a CA in the folder too: ca.pem, which everybody may have, and ca.key, which signs
    certificates and should be kept away from brokers. Each certificate is NAME.pem and NAME.key, and says which cluster
    and role its holder has.

    Parameters
    ----------
    name
        Whose it is; its files are called so.
    role
        What its holder may be: brokers accept each other by it.
    cluster
        The cluster of brokers that it is for.
    joins
        Other clusters that it is for too, if it is an edge broker's.
    host
        Names and addresses that clients reach the broker by; without any, those of this machine to itself.
    days
        How long it is good.
    folder
        Where the files are.
    renew
        Replace files that are there already.
    """
    if not _NAME.fullmatch(name) or name == CA:
        sys.exit(f"mercast cert: {name!r} is no name for files: use letters, digits, dots and dashes, and not {CA!r}")
    if days < 1:
        sys.exit("mercast cert: --days is at least 1")
    if (folder / f"{name}.pem").exists() and not renew:
        sys.exit(f"mercast cert: {folder / name}.pem is there already: choose another name, or replace it by --renew")
    if joins and role != "edge":
        sys.exit("mercast cert: only an edge joins other clusters: add --role edge")
    hosts = () if role == "client" else host or _HERE
    try:
        make_ca(folder)
        make_certificate(folder, name, Identity(cluster, role), hosts, days, joins or ())
    except (SecurityError, OSError) as error:
        sys.exit(f"mercast cert: {error}")
    proves = ", ".join(str(Identity(one, role)) for one in (cluster, *(joins or ())))
    sys.stdout.write(f"{folder / name}.pem and {name}.key, signed by {folder / CA}.pem: {proves}\n")
