"""The examples of README and docs/wire.md, run as they stand against live brokers."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from live import PATIENCE, Mesh, Running, end, mercast, usual_ports
from wire_document import example_client

ROOT = Path(__file__).parents[2]
ACTIVATED = "make env && . .venv/bin/activate"


def sixty_seconds():
    """The shell lines of that part of README, by terminal, and its Python."""
    text = (ROOT / "README.md").read_text()
    part = text.partition("## Sixty seconds")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    (python,) = (block for language, block in blocks if language == "python")
    return [block.splitlines() for language, block in blocks if language == "sh"], python


@pytest.fixture
def shell(tmp_path):
    """How a terminal in which the environment is activated sees the world."""
    command = tmp_path / "bin/mercast"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m mercast "$@"\n')
    command.chmod(0o755)
    for variable in ("MERCAST_URL", "MERCAST_TOKEN"):
        assert variable not in os.environ
    return os.environ | {"PATH": f"{command.parent}:{os.environ['PATH']}"}


class Terminal(Running):
    """A line of shell that goes on."""

    def __init__(self, folder, line, shell):
        super().__init__(folder, env=shell)
        self._line = line

    def __enter__(self):
        out, err = (file.open("wb") for file in self._files)
        with out, err:
            self.process = subprocess.Popen(["sh", "-c", f"exec {self._line}"], stdout=out, stderr=err, **self._how)
        return self


@pytest.mark.slow
def test_sixty_seconds_to_a_first_event(tmp_path, shell):
    (first, second, third), python = sixty_seconds()
    assert first[0] == ACTIVATED

    def run(line):
        return subprocess.run(
            ["sh", "-c", line], env=shell, capture_output=True, text=True, timeout=PATIENCE, check=True
        )

    with usual_ports(), Terminal(tmp_path, first[1].partition("#")[0], shell) as brokers:
        brokers.says("Ctrl-C here stops all")
        assert "mercast sub stock.quote 'price < 100'   (Ctrl-C" in brokers.out
        done = mercast("broker", "--id", 9)
        assert done.returncode == 1
        assert done.stderr.endswith("mercast: port 7470 is in use; choose another with --listen\n")
        with Terminal(tmp_path, *second, shell) as sub:
            sub.says("is settled")
            assert len(third) == 4
            for line in third[:2]:
                assert run(line).stdout == line.partition("# ")[2] + "\n"
            traced, seen = (run(line).stdout for line in third[2:])
            assert traced.splitlines()[0] == "accepted, 1 destination"
            assert "delivered to mercast-sub." in traced
            assert seen.startswith("broker 1 of cluster default")
            assert end(sub.process, signal.SIGINT) == 0
            assert sub.out.splitlines() == ["stock.quote symbol=ACME price=99", "stock.quote symbol=ACME price=42"]
        done = subprocess.run(
            [sys.executable, "-c", python], capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert (done.stdout, done.stderr) == ("stock.quote {'symbol': 'ACME', 'price': 99}\n", "")
        assert end(brokers.process, signal.SIGINT) == 0


def secure_set_up():
    """What security.md says to do: the lines of each block of shell, and the configuration."""
    part = (ROOT / "docs/security.md").read_text().partition("## A first secure set-up")[2].partition("\n## ")[0]
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
    (config,) = (block for language, block in blocks if language == "yaml")
    return [block.splitlines() for language, block in blocks if language == "sh"], config


@pytest.mark.slow
def test_a_first_secure_set_up(tmp_path, shell, monkeypatch):
    (making, (check, start), (exporting, subscribing, *publishing)), config = secure_set_up()
    monkeypatch.chdir(tmp_path)
    exported = dict(pair.split("=") for pair in exporting.removeprefix("export ").split())

    def run(line, status=0):
        done = subprocess.run(["sh", "-c", line], env=shell | exported, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    for line in making:
        run(line)
    second = re.sub(r"\b747(?=[02]$)", "750", config, flags=re.MULTILINE).replace("broker-1", "broker-2")
    second = second.replace("id: 1", "id: 2").replace("peer_listen: 127.0.0.1:7471", "peer_listen: 127.0.0.1:7501")
    Path("broker-1.yaml").write_text(config)
    Path("broker-2.yaml").write_text(second)
    assert run(check) == "the configuration is right\n"
    with (
        usual_ports(),
        Terminal(tmp_path, start, shell) as first,
        Terminal(tmp_path, start.replace("broker-1", "broker-2"), shell) as other,
    ):
        first.says('"linked"')
        other.says('"linked"')
        elsewhere = shell | exported | {"MERCAST_URL": "mercasts://localhost:7500"}
        with Terminal(tmp_path, f"env {subscribing}", elsewhere) as sub:
            sub.says("is settled")
            for line, status in zip(publishing, (0, 1), strict=True):
                assert run(line, status) == line.partition("# ")[2] + "\n"
            sub.says("stock.quote symbol=ACME price=99")


def test_the_client_of_the_wire_document():
    with Mesh(1) as mesh:
        where = mesh[1].client.split(":")
        done = subprocess.run(
            [sys.executable, "-c", example_client(), *where],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.splitlines() == [
            "connected as example.1",
            "without []",
            "request 2 found 1 destinations stock.quote {'symbol': 'ACME', 'price': 99.5} b'hello'",
        ]
