"""Java 17 or newer, which Kafka and Spark run on: found, or installed for root, or asked for in one sentence."""

import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from mercast.kafka.errors import KafkaError

LEAST = 17

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')
_ROOT = 0
_ANSWER_WITHIN = 30.0


class _Installer(NamedTuple):
    refresh: tuple[str, ...]
    install: tuple[str, ...]
    packages: tuple[str, ...]
    """The first that the system knows."""


_INSTALLERS = {
    "apt-get": _Installer(
        ("update", "-qq"),
        ("install", "-y", "-qq", "--no-install-recommends"),
        ("openjdk-17-jre-headless", "openjdk-21-jre-headless", "openjdk-25-jre-headless"),
    ),
    "dnf": _Installer((), ("install", "-y", "-q"), ("java-17-openjdk-headless", "java-21-openjdk-headless")),
    "apk": _Installer((), ("add", "--no-cache", "-q"), ("openjdk17-jre-headless", "openjdk21-jre-headless")),
    "zypper": _Installer((), ("-n", "-q", "install"), ("java-17-openjdk-headless", "java-21-openjdk-headless")),
    "pacman": _Installer(("-Sy",), ("-S", "--noconfirm", "-q"), ("jre17-openjdk-headless", "jre21-openjdk-headless")),
}


def find_java(tell: Callable[[str], None] = lambda _: None) -> Path:
    """The program. What is installed on the way is told first; NO_INSTALL=1 forbids that."""
    found = _newest()
    if found is None and os.geteuid() == _ROOT and os.environ.get("NO_INSTALL", "") in ("", "0"):
        _install(tell)
        found = _newest()
    if found is None:
        raise KafkaError(f"Java {LEAST} or newer is needed and was not found; install it by: {_to_type()}")
    return found


def _newest() -> Path | None:
    """That of JAVA_HOME, or of the path; another one only where these are too old."""
    return next((java for java in _candidates() if version_of(java) >= LEAST), None)


def _candidates() -> Iterator[Path]:
    home = os.environ.get("JAVA_HOME")
    if home:
        yield Path(home) / "bin/java"
    on_path = shutil.which("java")
    if on_path:
        yield Path(on_path)
    yield from sorted(Path("/usr/lib/jvm").glob("*/bin/java"))


def version_of(java: Path) -> int:
    """0 if it does not run."""
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=_ANSWER_WITHIN, check=True)
    except (OSError, subprocess.SubprocessError):
        return 0
    version = _VERSION.search(said.stderr + said.stdout)
    return int(version[1]) if version else 0


def _install(tell: Callable[[str], None]) -> None:
    """By the system's own package manager; whether that worked shows when Java is looked for again."""
    manager = _manager()
    if manager is None:
        return
    how = _INSTALLERS[manager]
    tell(f"installing Java by {manager} (NO_INSTALL=1 forbids it)")
    if how.refresh:
        _run(manager, *how.refresh)
    any(_run(manager, *how.install, package) for package in how.packages)


def _run(*command: str) -> bool:
    environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    try:
        return subprocess.run(command, env=environment, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def _manager() -> str | None:
    return next(filter(shutil.which, _INSTALLERS), None)


def _to_type() -> str:
    manager = _manager()
    if manager is None:
        return "your system's package manager (a Java runtime, 17 or newer), and set JAVA_HOME to its folder"
    how = _INSTALLERS[manager]
    sudo = "" if os.geteuid() == _ROOT else "sudo "
    return f"{sudo}{manager} {' '.join(how.install)} {how.packages[0]}".replace(" -qq", "").replace(" -q", "")
