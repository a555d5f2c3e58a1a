"""The process that brokers of one machine are forked from (broker/nursery.py); no command for people."""

import os
import signal
import socket
import sys

import orjson

import mercast.broker.main
import mercast.cli.broker  # noqa: F401 - and all that a broker needs comes with the two
from mercast import garbage
from mercast.broker.nursery import PACKET, PREPARED
from mercast.cli import main as command
from mercast.matching import prepare
from mercast.processes import end_with_parent


def _load(prepared: bool) -> None:
    if prepared:
        prepare()
    garbage.settled()  # so that nobody touches, and thereby copies, what all have in common


def _serve(packets: socket.socket) -> list[str] | None:
    """Fork brokers as they are asked for. In a broker: its flags; in this process: None, when nobody can ask again."""

    def reap(*_: object) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if not pid:
                return
            _say(packets, pid, os.waitstatus_to_exitcode(status))

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for whoever has the brokers
    signal.signal(signal.SIGCHLD, reap)
    while asked := packets.recv(PACKET):
        flags, log = orjson.loads(asked)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])  # that it was started is said before that it ended
        pid = os.fork()
        if not pid:
            _become_broker(packets, log)
            return flags  # type: ignore[no-any-return]
        _say(packets, pid, None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    return None


def _say(packets: socket.socket, pid: int, status: int | None) -> None:
    try:
        packets.send(orjson.dumps([pid, status]))
    except OSError:
        os._exit(0)  # the other side has ended


def _become_broker(packets: socket.socket, log: str) -> None:
    end_with_parent()
    packets.close()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for here, there in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(here, there)
    os.closerange(3, max(nothing, output) + 1)


def main() -> None:
    _load(PREPARED in sys.argv)
    flags = _serve(socket.socket(fileno=os.dup(0)))
    if flags is not None:
        sys.argv = ["mercast", "broker", *flags]
        command()


if __name__ == "__main__":
    main()
