"""The images as OCI archives, without a container engine: the content that the Containerfiles beside this describe.

    make images                      # build/images/mercast.tar and mercast-spark.tar
    ctr images import build/images/mercast.tar

The system below comes from packages of Debian 12 (system.packages), unpacked; the rest from pip, by the lock files
here. So it takes a Debian 12 with apt, and Python 3.11. Layers are kept in build/images/layers, and made anew when what
they are made from has changed.
"""

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable, Sequence
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from mercast.kafka.jars import KAFKA, connector, find_jars
from mercast.kafka.java import find_java

_HERE = Path(__file__).parent
_PROJECT = _HERE.parent
_OUT = _PROJECT / "build/images"
_PYTHON = (3, 11)
"""Of the system below: compiled packages are for this one."""

_SYSTEM = (_HERE / "system.packages").read_text().split()
_JAVA = ["java-common", "openjdk-17-jre-headless"]
_WORDS = "sh ls cat cp mv rm mkdir env id ps kill sleep date hostname grep sed sort head tail nc wget".split()  # noqa: SIM905
"""Of the shell, by busybox: for the entry point, and for whoever looks into a container."""
_USERS = "root:x:0:0:root:/root:/bin/sh\nmercast:x:10001:10001:mercast:/tmp:/bin/sh\n"
_GROUPS = "root:x:0:\nmercast:x:10001:\n"

_ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONPATH": "/opt/own:/opt/mercast",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONUNBUFFERED": "1",
    "HOME": "/tmp",
    "NUMBA_CACHE_DIR": "/tmp/compiled",
}
_WITH_JAVA = {"JAVA_HOME": "/opt/java", "MERCAST_CACHE": "/opt/jars", "NO_INSTALL": "1"}
_ENTRY = ["/bin/sh", "/opt/own/entrypoint.sh"]

Fill = Callable[[Path], None]
"""Puts the files of a layer into a folder that stands for the root."""


class Layer(NamedTuple):
    file: Path
    digest: str


def main() -> None:
    asked = argparse.ArgumentParser(description="Images as OCI archives, without a container engine.")
    asked.add_argument("images", nargs="*", help="mercast, mercast-spark; both by default")
    asked.add_argument("--tag", default=version("mercast"))
    asked.add_argument("--registry", default="docker.io/library", help="what the names begin with")
    given = asked.parse_args()
    if sys.version_info[:2] != _PYTHON or not shutil.which("apt-get"):
        sys.exit("images: this takes Python 3.11 and apt-get; with a container engine, use images/Containerfile")
    made = {"mercast": _plain, "mercast-spark": _with_spark}
    for name in given.images or made:
        if name not in made:
            sys.exit(f"images: {name!r} is none of {', '.join(made)}")
        layers, environment = made[name]()
        file = _archive(name, f"{given.registry}/{name}:{given.tag}", layers, environment)
        _tell(f"{file.relative_to(_PROJECT)}: {given.registry}/{name}:{given.tag}, {file.stat().st_size >> 20} MiB")


def _plain() -> tuple[list[Layer], dict[str, str]]:
    layers = [_system(), _packages("mercast"), _own()]
    return [*layers, _compiled(layers)], _ENVIRONMENT


def _with_spark() -> tuple[list[Layer], dict[str, str]]:
    return [_system(), _java(), _packages("spark"), _jars(), _own()], _ENVIRONMENT | _WITH_JAVA


# -- layers ------------------------------------------------------------------------------------------------------------


def _system() -> Layer:
    def fill(root: Path) -> None:
        _unpack(_SYSTEM, root)
        for folder in ("tmp", "proc", "sys", "dev", "run", "var/tmp", "root", "etc/ssl/certs"):
            (root / folder).mkdir(parents=True, exist_ok=True)
        for folder in ("tmp", "var/tmp"):
            (root / folder).chmod(0o1777)
        (root / "etc/passwd").write_text(_USERS)
        (root / "etc/group").write_text(_GROUPS)
        shutil.copy("/etc/ssl/certs/ca-certificates.crt", root / "etc/ssl/certs/")
        for word in _WORDS:
            if not (root / "bin" / word).exists():
                (root / "bin" / word).symlink_to("busybox")

    return _layer("system", [*_SYSTEM, *_WORDS, _USERS, _GROUPS], fill)


def _java() -> Layer:
    def fill(root: Path) -> None:
        _unpack(_JAVA, root)
        (home,) = (root / "usr/lib/jvm").glob("java-17-openjdk-*")
        (root / "opt").mkdir()
        (root / "opt/java").symlink_to(Path("/", home.relative_to(root)))
        (root / "usr/bin").mkdir(parents=True, exist_ok=True)
        (root / "usr/bin/java").symlink_to("/opt/java/bin/java")
        # Made by a script when the package is installed: whom Java trusts.
        trusted = root / "etc/ssl/certs/java/cacerts"
        trusted.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(find_java().resolve().parent.parent / "lib/security/cacerts", trusted)

    return _layer("java", _JAVA, fill)


def _packages(name: str) -> Layer:
    lock = _HERE / f"{name}.lock"

    def fill(root: Path) -> None:
        _pip(root / "opt/mercast", "install", "--require-hashes", "--requirement", lock)

    return _layer(f"packages-{name}", [lock.read_text()], fill)


def _jars() -> Layer:
    wanted = (KAFKA, connector("4.0.0"))

    def fill(root: Path) -> None:
        for jars in wanted:
            found = find_jars(find_java(_tell), _tell, jars)
            shutil.copytree(found, root / "opt/jars" / found.name)

    return _layer("jars", [str(wanted)], fill)


def _own() -> Layer:
    """Mercast itself, as a wheel of it would install."""
    sources = sorted(
        file
        for folder in ("services", "streaming", "loadtest")
        for file in (_PROJECT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    )
    others = [_PROJECT / "pyproject.toml", _HERE / "entrypoint.sh"]

    def fill(root: Path) -> None:
        _pip(root / "opt/own", "install", "--no-deps", "--no-build-isolation", _PROJECT)
        shutil.copy(_HERE / "entrypoint.sh", root / "opt/own/")

    return _layer("own", [f"{file} {_digest(file.read_bytes())}" for file in (*sources, *others)], fill)


def _compiled(below: Sequence[Layer]) -> Layer:
    """The inner loop of matching, compiled in a root that is as it will be: each pod would take half a minute for it.
    Of mercast itself, the last layer below, only what is compiled matters."""

    def fill(root: Path) -> None:
        with TemporaryDirectory(dir=_OUT) as name:
            for layer in below:
                with tarfile.open(layer.file) as tar:
                    tar.extractall(name, filter="tar")
            environment = _ENVIRONMENT | {"NUMBA_CACHE_DIR": "/opt/compiled"}
            given = [f"{key}={value}" for key, value in environment.items()]
            prepare = "from mercast.matching import prepare; prepare()"
            _run("chroot", name, "/bin/env", "-i", *given, "/usr/bin/python3.11", "-c", prepare)
            shutil.copytree(Path(name, "opt/compiled"), root / "opt/compiled")

    loops = sorted((_PROJECT / "services/mercast/matching").glob("*.py"))
    return _layer("compiled", [*(layer.digest for layer in below[:-1]), *(file.read_text() for file in loops)], fill)


# -- how ---------------------------------------------------------------------------------------------------------------


def _layer(name: str, made_from: Sequence[str], fill: Fill) -> Layer:
    """As it was made before, if it was made from the same in the same way."""
    folder = _OUT / "layers"
    folder.mkdir(parents=True, exist_ok=True)
    known_by = _digest("\n".join([Path(__file__).read_text(), *made_from]).encode())[:16]
    file = folder / f"{name}-{known_by}.tar"
    if not file.exists():
        _tell(f"making the layer {name}")
        for old in folder.glob(f"{name}-{'?' * 16}.tar"):
            old.unlink()
        with TemporaryDirectory(dir=_OUT) as root:
            fill(Path(root))
            part = file.with_suffix(".part")
            with tarfile.open(part, "w") as tar:
                for entry in sorted(Path(root).rglob("*")):
                    tar.add(entry, entry.relative_to(root), recursive=False, filter=_plainly)
            part.rename(file)
    with file.open("rb") as read:
        return Layer(file, hashlib.file_digest(read, "sha256").hexdigest())


def _plainly(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    """Of root and without a time: the same content is the same layer. What is compiled knows its source by its time."""
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def _unpack(packages: Sequence[str], root: Path) -> None:
    with TemporaryDirectory(dir=_OUT) as folder:
        _run("apt-get", "download", "-qq", *packages, cwd=Path(folder), env=os.environ | {"APT_CONFIG": ""})
        for package in sorted(Path(folder).glob("*.deb")):
            _run("dpkg-deb", "-x", package, root)
    for folder in ("doc", "man", "locale", "info", "lintian"):
        shutil.rmtree(root / "usr/share" / folder, ignore_errors=True)


def _pip(target: Path, *words: str | Path) -> None:
    _run(
        sys.executable,
        "-m",
        "pip",
        "--quiet",
        "--disable-pip-version-check",
        *words,
        "--no-compile",
        "--target",
        target,
    )
    # A pod could not write them; and files of layers have no time to tell by that these are of the same source.
    _run(sys.executable, "-m", "compileall", "-q", "-j0", "--invalidation-mode", "unchecked-hash", "-s", target, target)


def _run(*words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"images: {' '.join(map(str, words))[:200]} has failed:\n{(done.stdout + done.stderr)[-2000:]}")


def _archive(
    name: str, reference: str, layers: Sequence[Layer], environment: dict[str, str], entry: Sequence[str] = _ENTRY
) -> Path:
    """In the OCI image layout, with the name where containerd looks for it."""
    configuration = {
        "architecture": _architecture(),
        "os": "linux",
        "config": {
            "Env": [f"{key}={value}" for key, value in environment.items()],
            "Entrypoint": list(entry),
            "User": "10001:10001",
            "WorkingDir": "/tmp",
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{layer.digest}" for layer in layers]},
    }
    media = "application/vnd.oci.image"
    blobs = [json.dumps(configuration).encode()]
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{media}.manifest.v1+json",
        "config": _described(blobs[0], f"{media}.config.v1+json"),
        "layers": [
            {"mediaType": f"{media}.layer.v1.tar", "digest": f"sha256:{digest}", "size": file.stat().st_size}
            for file, digest in layers
        ],
    }
    blobs.append(json.dumps(manifest).encode())
    named = {"io.containerd.image.name": reference, "org.opencontainers.image.ref.name": reference.rpartition(":")[2]}
    index = {
        "schemaVersion": 2,
        "manifests": [_described(blobs[1], f"{media}.manifest.v1+json") | {"annotations": named}],
    }
    out = _OUT / f"{name}.tar"
    with tarfile.open(out, "w") as tar:
        _put(tar, "oci-layout", b'{"imageLayoutVersion":"1.0.0"}')
        _put(tar, "index.json", json.dumps(index).encode())
        for blob in blobs:
            _put(tar, f"blobs/sha256/{_digest(blob)}", blob)
        for file, digest in layers:
            tar.add(file, f"blobs/sha256/{digest}", filter=_plainly)
    return out


def _architecture() -> str:
    return subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True, check=True).stdout.strip()


def _described(blob: bytes, media: str) -> dict[str, str | int]:
    return {"mediaType": media, "digest": f"sha256:{_digest(blob)}", "size": len(blob)}


def _put(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    tar.addfile(entry, BytesIO(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _tell(line: str) -> None:
    sys.stderr.write(line + "\n")


if __name__ == "__main__":
    main()
