"""The first process of a machine (machine.py), in namespaces of its own: it starts and ends others as it is told on its
standard input, a line of JSON each, and ends when nobody is there any more to tell it anything. Then the kernel ends
all that ran here, and takes away their mounts and networks."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from threading import Thread


def main() -> None:
    started: dict[str, int] = {}
    Thread(target=_reap, daemon=True).start()
    print("ready", flush=True)
    for line in sys.stdin:
        told = json.loads(line)
        if "command" in told:
            with open(told["log"], "ab") as log:
                process = subprocess.Popen(
                    told["command"], env=told["environment"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
                )
            started[told["name"]] = process.pid
        else:
            with suppress(ProcessLookupError):
                os.kill(started[told["name"]], signal.Signals[told["signal"]])
        print("done", flush=True)


def _reap() -> None:
    """Orphans come to the first process."""
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(0.2)


if __name__ == "__main__":
    main()
