"""A machine within the machine: processes, mounts and network in namespaces of their own, so that nothing of it shows
outside and nothing is left when it ends, even if whoever made it is killed. What else could be left, cgroups and
folders, is taken away before and after. Settings of the kernel that are no namespace's are only played to it."""

import fcntl
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from build import CannotBe

_INIT = Path(__file__).parent / "init.py"
_CGROUPS = Path("/sys/fs/cgroup")
_PLACES = ("/var/lib/kubelet", "/var/lib/cni", "/opt/containerd")
"""Folders that kubelet and containerd want to be in, whatever they are told."""
_SETTINGS = ("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
             "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes")  # fmt: skip
"""Of the kernel, for the whole machine: kubelet changes them, here a file in the place of each."""
_BEGIN = f"""
mount --make-rshared /
mount -t tmpfs tmpfs /run
mkdir /run/netns /run/lock /run/settings
for place in /var/log {" ".join(_PLACES)}; do
  mkdir -p $place
  mount -t tmpfs tmpfs $place
done
for setting in {" ".join(_SETTINGS)}; do
  if [ -e /proc/sys/$setting ]; then
    played=/run/settings/$(echo $setting | tr / .)
    cat /proc/sys/$setting > $played
    mount --bind $played /proc/sys/$setting
  fi
done
ip link set lo up
exec "$@"
"""
_UNSHARE = ["unshare", "--fork", "--kill-child", "--mount-proc"]
_NAMESPACES = ["--mount", "--net", "--ipc", "--uts", "--pid"]
_SEARCHED = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Machine:
    def __init__(self, folder: Path, programs: Path) -> None:
        """`folder` is for what it keeps while it is there."""
        self.folder = folder
        self._cgroup = f"mercast-{sha256(str(folder).encode()).hexdigest()[:12]}"
        self._environment = {"PATH": f"{programs}:{_SEARCHED}", "HOME": str(folder), "LANG": "C.UTF-8"}

    def start(self) -> None:
        self.folder.parent.mkdir(parents=True, exist_ok=True)
        self._lock = (self.folder.parent / f"{self.folder.name}.lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CannotBe("another run has its Kubernetes up on this machine: wait for it to end") from None
        self._clear()
        self._made = [place for place in _PLACES if not Path(place).exists()]
        (self.folder / "log").mkdir(parents=True)
        self._process = subprocess.Popen(
            [*_UNSHARE, *_NAMESPACES, "sh", "-ec", _BEGIN, "sh", sys.executable, "-S", str(_INIT)],
            env=self._environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,  # Ctrl-C is for who made it
        )
        self._heard()
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children").read_text()
        self._first = int(children.split()[0])

    def stop(self) -> None:
        with suppress(OSError):
            self._process.stdin.close()  # type: ignore[union-attr]
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self._process.kill()
        self._process.wait()
        self._process.stdout.close()  # type: ignore[union-attr]
        kept = self.folder.parent / f"{self.folder.name}-log"
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(self.folder / "log", kept)
        self._clear()
        for place in self._made:
            os.rmdir(place)
        self._lock.close()

    def begin(self, name: str, *command: str | Path, network: str | None = None, **environment: str) -> None:
        """A process that stays; what it says is in log/<name>."""
        words = [*_in_network(network), *map(str, command)]
        log = str(self.folder / "log" / name)
        self._tell({"name": name, "command": words, "environment": self._environment | environment, "log": log})

    def signal(self, name: str, signal: str) -> None:
        self._tell({"name": name, "signal": signal})

    def _tell(self, what: Mapping[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        self._heard()

    def _heard(self) -> None:
        assert self._process.stdout is not None
        if not self._process.stdout.readline():
            raise CannotBe("namespaces cannot be made here (unshare): name a cluster by KUBECONFIG")

    def inside(self, command: Sequence[str | Path], network: str | None = None) -> list[str]:
        """The command, as it is to be given outside."""
        enter = ["nsenter", f"--target={self._first}", "--mount", "--net", "--pid", f"--wd={os.getcwd()}"]
        return [*enter, *_in_network(network), *map(str, command)]

    def run(self, *command: str | Path, network: str | None = None, given: str | None = None) -> str:
        done = subprocess.run(
            self.inside(command, network),
            env=self._environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise CannotBe(f"{' '.join(map(str, command))[:300]}: {done.stderr[-2000:] or done.stdout[-2000:]}")
        return done.stdout

    # -- what is no namespace's --------------------------------------------------------------------------------------

    def cgroup(self, name: str) -> str:
        """A cgroup of this name, in all hierarchies."""
        for root in _hierarchies():
            (root / self._cgroup / name).mkdir(parents=True, exist_ok=True)
            for parent in (root, root / self._cgroup, root / self._cgroup / name):
                if (parent / "cgroup.controllers").exists():
                    controllers = (parent / "cgroup.controllers").read_text().split()
                    with suppress(OSError):  # threaded, or not ours to give
                        (parent / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in controllers))
        return f"/{self._cgroup}/{name}"

    def _clear(self) -> None:
        until = time.monotonic() + 20
        for root in _hierarchies():
            while (root / self._cgroup).exists() and time.monotonic() < until:
                for folder, _, _ in os.walk(root / self._cgroup, topdown=False):
                    with suppress(OSError):  # its processes are still ending
                        os.rmdir(folder)
                time.sleep(0.05)
        subprocess.run(["rm", "-rf", self.folder], check=False)  # quicker than Python's


def _in_network(name: str | None) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{name}"] if name else []


def _hierarchies() -> list[Path]:
    """One, or in version 1 one for each controller."""
    if (_CGROUPS / "cgroup.controllers").exists():
        return [_CGROUPS]
    return [folder for folder in _CGROUPS.iterdir() if folder.is_dir() and (folder / "cgroup.procs").exists()]
