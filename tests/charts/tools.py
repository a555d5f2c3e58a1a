"""Helm and promtool, for tests of the chart: of our environment or the machine, or else from a Debian package, or built
by Go, once, and kept where other things are that were fetched once. python tests/charts/tools.py has them ready."""

import os
import shutil
import subprocess
import sys
import sysconfig
import time
from fcntl import LOCK_EX, flock
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mercast.kafka.jars import cache


class Tool(NamedTuple):
    name: str
    package: str
    version: str
    """Checked by Go against the sums that all of its users share."""
    instead: str
    debian: str = ""
    """The package that has it, as bin/ of its name: unpacked, not installed."""


HELM = Tool("helm", "helm.sh/helm/v3/cmd/helm", "v3.19.5", "install Helm 3")
PROMTOOL = Tool(
    "promtool",
    "github.com/prometheus/prometheus/cmd/promtool",
    "v0.305.0",
    "on Debian: apt-get install prometheus",
    "prometheus",
)
_EVERY = 15
"""Seconds between two words of progress."""


class NoTool(Exception):  # noqa: N818 - says what has happened
    pass


def find(tool: Tool) -> str:
    """The program. Whoever comes while another one builds it waits."""
    there = shutil.which(tool.name, path=sysconfig.get_path("scripts")) or shutil.which(tool.name)
    if there:
        return there
    built = cache() / f"{tool.name}-{tool.version}"
    built.parent.mkdir(parents=True, exist_ok=True)
    with (built.parent / f"{tool.name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if not built.exists() and not _unpack(tool, built):
            _build(tool, built)
    return str(built)


def _unpack(tool: Tool, to: Path) -> bool:
    """Whether a package had it."""
    if not tool.debian or not shutil.which("apt-get"):
        return False
    with TemporaryDirectory(prefix="unpacking-", dir=to.parent) as folder:
        try:
            _run(["apt-get", "download", "-qq", tool.debian], folder)
            (package,) = Path(folder).glob("*.deb")
            _run(["dpkg-deb", "-x", str(package), folder], folder)
            Path(folder, "usr/bin", tool.name).rename(to)
        except (NoTool, OSError, ValueError):
            return False
    return True


def _build(tool: Tool, to: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise NoTool(f"{tool.name} is not here, and no Go to build it with: {tool.instead}, or Go")
    _tell(f"building {tool.name} {tool.version} (once, some minutes) into {to.parent}")
    with TemporaryDirectory(prefix="building-", dir=to.parent) as folder:
        Path(folder, "go.mod").write_text("module build\n")
        _run([go, "get", f"{tool.package}@{tool.version}"], folder)
        _run([go, "build", "-trimpath", "-ldflags=-s -w", "-o", "built", tool.package], folder)
        Path(folder, "built").rename(to)


def _run(command: list[str], folder: str) -> None:
    began = told = time.monotonic()
    with Path(folder, "said").open("w+") as said:
        # Without C, a machine needs no compiler but Go.
        plain = os.environ | {"CGO_ENABLED": "0"}
        process = subprocess.Popen(command, cwd=folder, env=plain, stdout=said, stderr=subprocess.STDOUT)
        while process.poll() is None:
            time.sleep(0.2)
            if time.monotonic() - told > _EVERY:
                told = time.monotonic()
                _tell(f"{' '.join(command[:2])}: {told - began:.0f} s")
        if process.returncode:
            said.seek(0)
            raise NoTool(f"{' '.join(command)}: {said.read()[-2000:]}")


def _tell(line: str) -> None:
    sys.stderr.write(f"{line} …\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        for tool in (HELM, PROMTOOL):
            print(find(tool))
    except NoTool as error:
        sys.exit(str(error))
