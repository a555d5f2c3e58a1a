"""Signals that come before a broker is there."""

import subprocess
import sys

import pytest

PROGRAM = """
import os, signal, sys, time
from mercast.broker import main
from mercast.cli.broker import broker

def send(*names):
    for name in names:
        os.kill(os.getpid(), getattr(signal, name))
        print(name, flush=True)

def prepare():
    {preparing}

class Early(main.Reloading):
    def __init__(self, *given):
        {starting}
        super().__init__(*given)

main.prepare, main.Reloading, main._LONG = prepare, Early, 0.0
anywhere = "127.0.0.1:0"
broker(id=1, listen=anywhere, peer_listen=anywhere, admin_listen=anywhere, matcher="index", log_format="json")
"""


@pytest.mark.parametrize(
    ("preparing", "starting"),
    [
        ('send("SIGHUP", "SIGTERM")', "pass"),
        ("pass", 'send("SIGHUP", "SIGTERM")'),
    ],
    ids=["while code is compiled", "before it listens"],
)
def test_sighup_does_no_harm_and_sigterm_ends_it_well(preparing, starting):
    program = PROGRAM.format(preparing=preparing, starting=starting)
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert "SIGHUP" in done.stdout
    assert done.returncode == 0


def test_it_says_what_takes_so_long():
    wait = '[one.join() for one in main.threading.enumerate()[1:]]; send("SIGTERM")'
    program = PROGRAM.format(preparing=wait, starting="pass")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=200, check=False)
    assert "preparing" in done.stdout + done.stderr
    assert done.returncode == 0
