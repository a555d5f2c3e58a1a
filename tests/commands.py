"""Commands of ours, each a process as a user would have it; but forked from one that has loaded what commands need, for
most of them take longer to load than to run."""

import os
import sys
from multiprocessing import get_context
from pathlib import Path
from subprocess import CompletedProcess, TimeoutExpired
from tempfile import TemporaryDirectory

from mercast.cli import main
from mercast.processes import end_with_parent

PATIENCE = 200.0
"""Seconds: for a loaded machine."""

LOADED = {"bench", "broker", "doctor", "filter", "lab", "local", "overlay", "pub", "sub", "taps", "trace"}
_FORKED = get_context("forkserver")
_BENEATH = ("mercast.broker.main", "mercast.lab.worlds")
_FORKED.set_forkserver_preload([*(f"mercast.cli.{name}" for name in sorted(LOADED)), *_BENEATH])


def run(*arguments, input="", env=None, timeout=PATIENCE):
    """A command, run to its end: as subprocess.run would, of text."""
    with TemporaryDirectory(prefix="mercast-") as folder:
        files = [Path(folder) / name for name in ("in", "out", "err")]
        files[0].write_text(input)
        command = ["mercast", *map(os.fsdecode, (one if isinstance(one, bytes) else str(one) for one in arguments))]
        process = _FORKED.Process(target=_become, args=(command, dict(os.environ if env is None else env), files))
        process.start()
        process.join(timeout)
        status = process.exitcode
        if status is None:
            process.kill()
            process.join()
        process.close()
        said = [file.read_text(errors="surrogateescape") if file.exists() else "" for file in files[1:]]
    if status is None:
        raise TimeoutExpired(command, timeout, *said)
    return CompletedProcess(command, status, *said)


def _become(command, environment, files):
    end_with_parent()
    os.environ.clear()
    os.environ.update(environment)
    for number, (file, how) in enumerate(zip(files, (os.O_RDONLY, *[os.O_WRONLY | os.O_CREAT] * 2), strict=True)):
        opened = os.open(file, how, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115 - they stay
    sys.argv = command
    main()
