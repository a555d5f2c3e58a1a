"""Live brokers for tests: started as processes, watched through their admin ports. Tests wait for conditions."""

import atexit
import json
import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path
from shutil import rmtree
from tempfile import gettempdir
from time import monotonic, sleep
from urllib.error import HTTPError
from urllib.request import urlopen

import audited
import commands

from mercast.broker.addresses import CLIENT_PORT
from mercast.broker.local import Local
from mercast.broker.nursery import Nursery
from mercast.processes import end_with_parent, free_addresses, ports

PATIENCE = 100.0
"""Seconds: for a loaded machine. Nothing waits so long where all is well."""

ERROR = '"level": "error"'
"""In a line of a broker's log: a defect."""

HTTP = '"logger": "aiohttp.server"'
"""The library's own word about requests that are none."""

_POLL = 0.02
_COMMAND_WITHIN = 200
_SAMPLE = re.compile(r"^(\w+)(?:\{(.*)\})? (\S+)$")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def until(condition, what, patience=PATIENCE):
    """What the condition gives, as soon as it holds."""
    end = monotonic() + patience
    while not (found := condition()):
        assert monotonic() < end, f"not within {patience:.0f} s: {what() if callable(what) else what}"
        sleep(_POLL)
    return found


# -- what brokers tell -----------------------------------------------------------------------------------------------


def ask(broker, path):
    """The JSON that a broker's admin port answers, whatever the status."""
    try:
        with urlopen(f"http://{broker.admin}/{path}", timeout=PATIENCE) as answer:
            return json.load(answer)
    except HTTPError as error:
        return json.load(error)


def metrics(broker):
    """Values by name, or by name and the value of the one label."""
    with urlopen(f"http://{broker.admin}/metrics", timeout=PATIENCE) as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        sample = _SAMPLE.match(line)
        if sample:
            name, labels, value = sample.groups()
            values = [text for _, text in _LABEL.findall(labels or "")]
            found[(name, *values) if values else name] = float(value)
    return found


def reachable(broker):
    return {one["id"] for one in ask(broker, "overlay")["overlay"]["brokers"] if one["reachable"]}


def linked(broker):
    """Links that count, as a broker knows them."""
    return {tuple(link["between"]) for link in ask(broker, "overlay")["overlay"]["links"] if link["state"] == "up"}


def agree(brokers):
    """Wait until these brokers see each other and nobody else, and the same links."""
    brokers = list(brokers)
    ids = {broker.id for broker in brokers}

    def agreed():
        return all(reachable(one) == ids for one in brokers) and len({frozenset(linked(one)) for one in brokers}) == 1

    until(agreed, lambda: f"agreement: {[(one.id, reachable(one), linked(one)) for one in brokers]}")


def rss(pid):
    """Bytes of memory that a process has."""
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


# -- processes -------------------------------------------------------------------------------------------------------


@cache
def nursery(matcher):
    """The process that brokers with such a matcher are forked from: one for all tests of a worker, for it takes longer
    to be there than most tests do. Its brokers have the environment that it began with."""
    shared = Nursery(prepared=matcher == "index")
    shared.__enter__()
    atexit.register(shared.__exit__)
    return shared


class Mesh(Local):
    """Brokers that agree on the overlay when the block begins. `each(id)` gives flags of one broker only.

    Without `matcher` they scan, which is there sooner than the index. `may_log` is of an error that is no surprise.
    `audit` says how what they did is audited after the tests (audited.py).
    """

    def __init__(self, brokers, links=None, *, matcher="scan", each=lambda _: [], may_log=HTTP, audit=None, **how):
        self._audit, self._taps = audit, None if audit is None else audited.folder_of_this_test()
        if self._taps:
            how["options"] = [*how.get("options", ()), "--taps", f"file://{self._taps}"]
        super().__init__(brokers, links, matcher=matcher, nursery=nursery(matcher), **how)
        self._each, self._may_log = each, may_log

    def __enter__(self):
        if self._taps:
            rmtree(self._taps, ignore_errors=True)
        super().__enter__()
        self.agree()
        return self

    def agree(self):
        """Wait until all brokers of each cluster do."""
        for cluster in {broker.cluster for broker in self.brokers.values()}:
            agree(broker for broker in self.brokers.values() if broker.cluster == cluster)

    def __exit__(self, kind, *_):
        self.stop()
        logs = [broker.log.read_text() for broker in self.brokers.values()]
        super().__exit__()
        if kind is None:  # nothing went wrong unnoticed either
            wrong = [line for log in logs for line in log.splitlines() if ERROR in line or "Traceback" in line]
            assert not [line for line in wrong if self._may_log not in line], "\n".join(wrong)
            if self._taps:
                audited.leave(self._taps, self._audit)

    def _flags(self, broker):
        flags, own = super()._flags(broker), [str(flag) for flag in self._each(broker.id)]
        for flag in {flag for flag in own if flag.startswith("--")} & set(flags):  # what is said of one broker wins
            at = flags.index(flag)
            del flags[at : at + 2]
        return flags + own


class Apart(Mesh):
    """Brokers that have nothing in common but the overlay: each is a command in an environment of its own."""

    def start(self, id):
        broker = self.brokers[id]
        with broker.log.open("ab") as log:
            how = {"stdout": log, "stderr": log, "env": self.environment(id)}
            broker.process = popen("broker", *self._flags(broker), **how)

    def environment(self, _id):
        return dict(os.environ)


class Lone:
    """One broker, by its own flags; a command of its own if anything is said of how it is started."""

    def __init__(self, log, id, *flags, peer=None, **how):
        self.id, self.log, self._how = id, log, how
        self.client, self.peer, self.admin = free_addresses(3)
        self.peer = peer or self.peer
        self.flags = ["--id", str(id), "--matcher", "scan", "--listen", self.client, "--peer-listen", self.peer]
        self.flags += ["--admin-listen", self.admin, *map(str, flags)]

    def __enter__(self):
        if self._how:
            with self.log.open("ab") as log:
                self.process = popen("broker", *self.flags, stdout=log, stderr=log, **self._how)
        else:
            self.process = nursery("scan").start(self.flags, self.log)
        until(lambda: "started" in self.told() or self.process.poll() is not None, self.told)
        assert self.process.poll() is None, self.told()
        return self

    def __exit__(self, *_):
        end(self.process)

    def told(self):
        return self.log.read_text()

    def says(self, *words):
        """Wait for a line of its log that has all these words."""
        until(lambda: any(all(word in line for word in words) for line in self.told().splitlines()), self.told)

    def is_ready(self):
        return ask(self, "readyz")["ready"]


def popen(*arguments, **how):
    """A command of ours."""
    return popen_python("-m", "mercast", *arguments, **how)


def popen_python(*arguments, **how):
    """In a group of its own, so that signals reach nobody else."""
    how = {"stdin": subprocess.DEVNULL, "preexec_fn": end_with_parent, "start_new_session": True} | how
    return subprocess.Popen([sys.executable, *map(str, arguments)], **how)


def end(process, by=signal.SIGTERM):
    """The exit status."""
    if process.poll() is None:
        process.send_signal(by)
    try:
        return process.wait(PATIENCE)
    finally:
        process.kill()


def mercast(*arguments, **how):
    """A command, run to its end: in an environment or a folder of its own, if one is given."""
    if arguments[0] in commands.LOADED and how.keys() <= {"input"}:
        return commands.run(*arguments, **how)
    how = {"capture_output": True, "text": True, "timeout": _COMMAND_WITHIN, "check": False} | how
    return subprocess.run([sys.executable, "-m", "mercast", *map(str, arguments)], **how)


class Running:
    """A command that goes on until the block ends; what it says is kept in files."""

    def __init__(self, folder, *command, **how):
        self._files = [folder / f"{len(list(folder.iterdir()))}.{end}" for end in ("out", "err")]
        self._command, self._how = command, how

    def __enter__(self):
        with self._files[0].open("wb") as out, self._files[1].open("wb") as err:
            self.process = popen(*self._command, stdout=out, stderr=err, **self._how)
        return self

    def __exit__(self, *_):
        end(self.process)

    @property
    def out(self):
        return self._files[0].read_text()

    @property
    def err(self):
        return self._files[1].read_text()

    def says(self, text):
        """Wait until it has said so, on either."""
        until(lambda: text in self.out + self.err, lambda: f"{text!r} in {self.out + self.err!r}")


@contextmanager
def usual_ports():
    """The ports that brokers have when nothing else is said: for one test of this machine at a time."""
    with (Path(gettempdir()) / "mercast-usual-ports.lock").open("w") as file:
        flock(file, LOCK_EX)
        until(
            lambda: all(map(is_free, local_ports(CLIENT_PORT, 3))), "ports 7470 and up are free: is a broker running?"
        )
        yield


def local_ports(first, brokers):
    """All that `mercast local` listens at."""
    firsts = [first, *(first + 30 + 10 * more for more in range(brokers - 1))]
    return [port + place for port in firsts for place in range(3)]


def free_port_for_local(brokers):
    """A first port for `mercast local`."""
    for first in ports()[::100]:
        if all(map(is_free, local_ports(first, brokers))):
            return first
    raise AssertionError("no free ports")


def is_free(port):
    with socket.socket() as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as brokers do
        try:
            one.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
