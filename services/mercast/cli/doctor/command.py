"""`mercast doctor`."""

import json as json_module
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Annotated, NoReturn

from cyclopts import Parameter

from mercast.broker.addresses import ADMIN_PORT
from mercast.cli.admin_port import parse_admin, read_token
from mercast.cli.asking import say
from mercast.cli.doctor import bundle
from mercast.cli.doctor.findings import Finding, findings
from mercast.cli.doctor.visit import STIMULI, Visit, visit
from mercast.cli.overlay import duration

_ENDS = (".tar.gz", ".tgz")


def doctor(
    *admins: str,
    output: Path | None = None,
    admin_token: Annotated[str, Parameter(env_var="MERCAST_ADMIN_TOKEN")] = "",
    without_stimuli: bool = False,
    json: bool = False,
) -> None:
    """Look at running brokers, say what is wrong, and make a bundle that others can look at (docs/doctor.md).

    Exit status: 0 if there is no problem, 1 if there is one. A broker that does not answer is a problem; the bundle is
    made all the same.

    Parameters
    ----------
    admins
        Admin addresses of the brokers, as host:port, or as https://host:port by TLS; without any, the usual one of this
        machine.
    output
        Where to write the bundle; by default mercast-doctor-<time>.tar.gz in this folder.
    admin_token
        What the admin ports ask for: a file that holds it (with a slash in its path), or the token itself.
    without_stimuli
        Leave out the last stimuli. In these are types and attributes of events, and names of clients.
    json
        Print what was found as JSON.
    """
    made = datetime.now().astimezone()
    file = output or Path(f"mercast-doctor-{made:%Y%m%d-%H%M%S}.tar.gz")
    if not file.name.endswith(_ENDS):
        _stop(f"--output: {file}: it will be a .tar.gz, and should be named so")
    if not os.access(file.parent, os.W_OK):
        _stop(f"--output: there is no folder {file.parent} that can be written to")
    try:
        addresses = list(dict.fromkeys(map(parse_admin, admins or [f"127.0.0.1:{ADMIN_PORT}"])))
    except ValueError as error:
        _stop(str(error))
    try:
        token = read_token(admin_token)
    except ValueError as error:
        _stop(f"--admin-token: {error}")
    visits = [visit(address, token, not without_stimuli) for address in addresses]
    found = findings(visits)
    try:
        files = bundle.write(file, made, visits, found, not without_stimuli)
    except OSError as error:
        _stop(f"{file} cannot be written: {error.strerror}")
    if json:
        said = {"bundle": str(file), "brokers": list(map(_plain, visits)), "findings": [one._asdict() for one in found]}
        say(json_module.dumps(said, indent=2, ensure_ascii=False))
    else:
        _show(visits, found)
        told = (
            ""
            if not any(STIMULI in one.files for one in visits)
            else "; attributes of events are in it (--without-stimuli leaves them out)"
        )
        say(f"\nwritten to {file}: {files} files{told}")
    sys.exit(any(one.level == "problem" for one in found))


def _plain(one: Visit) -> dict[str, object]:
    return {"admin": str(one.address), "broker": one.overlay and one.overlay["broker"], "missing": one.missing}


def _show(visits: Sequence[Visit], found: Sequence[Finding]) -> None:
    for one in visits:
        if one.overlay:
            me = one.overlay["broker"]
            state = "ready" if me["ready"] else "not ready"
            up = duration(me["uptime_seconds"])
            say(f"{one.name} of cluster {me['cluster']} at {one.address}: {state}, {me['version']}, up for {up}")
    for level in ("problem", "note"):
        some = [finding for finding in found if finding.level == level]
        say(f"\n{len(some) or 'no'} {level}{'' if len(some) == 1 else 's'}")
        for finding in some:
            say(f"  {finding.where}: {finding.what}\n    → {finding.do}")


def _stop(reason: str) -> NoReturn:
    sys.exit(f"mercast doctor: {reason}")
