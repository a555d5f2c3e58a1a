"""The programs of a Kubernetes, built by Go from the two modules beside this, once, and kept where other things are
that were fetched once; and the packages of the system that they need. `python tests/kubernetes/build.py` makes them."""

import os
import shutil
import subprocess
import sys
import time
from fcntl import LOCK_EX, flock
from hashlib import sha256
from pathlib import Path

from mercast.kafka.jars import cache

HERE = Path(__file__).parent
VERSION = "v1.34.4"
"""Of Kubernetes; as in programs/go.mod."""
_OWN = "k8s.io/kubernetes/cmd/"
_NODE = ["kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "kubelet", "kubectl"]
_PROGRAMS = [*(_OWN + name for name in _NODE), "helm.sh/helm/v3/cmd/helm", "./dns", "./pause"]
_ETCD = "go.etcd.io/etcd/server/v3"
_CALICO = "github.com/projectcalico/calico"
_POLICIES = [f"{_CALICO}/cni-plugin/cmd/calico", f"{_CALICO}/felix/cmd/calico-felix"]
_NEEDED = {
    "containerd": "containerd",
    "runc": "runc",
    "/usr/lib/cni/host-local": "containernetworking-plugins",
    "iptables": "iptables",
    "nft": "nftables",
    "ipset": "ipset",
    "conntrack": "conntrack",
    "ip": "iproute2",
}
"""Programs, and the packages of Debian that have them."""
_EVERY = 30
"""Seconds between two words of progress."""


class CannotBe(Exception):  # noqa: N818 - says what has happened
    """No Kubernetes can be had here, and why."""


def programs() -> Path:
    """The folder of all programs, built if need be."""
    sources = [file for folder in ("programs", "policies") for file in sorted((HERE / folder).rglob("*.*"))]
    known_by = sha256(b"".join(file.read_bytes() for file in sources)).hexdigest()[:12]
    folder = cache() / f"kubernetes-{VERSION}-{known_by}"
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "kubernetes.lock").open("w") as lock:
        flock(lock, LOCK_EX)  # another run may be at it
        if not (folder / "built").exists():
            _build(folder)
    return folder


def _build(folder: Path) -> None:
    go = shutil.which("go")
    if go is None:
        raise CannotBe("there is no Go to build Kubernetes with: install Go 1.26, or name a cluster by KUBECONFIG")
    _tell(f"building Kubernetes {VERSION} (once, a quarter of an hour) into {folder}")
    folder.mkdir(parents=True, exist_ok=True)
    of = " ".join(
        f"-X k8s.io/{place}/version.git{name}"
        for place in ("component-base", "client-go/pkg")
        for name in (f"Version={VERSION}", "Major=1", "Minor=34", "TreeState=clean", "Commit=module")
    )
    _go(go, "programs", of, f"{folder}/", _PROGRAMS)
    _go(go, "programs", "", f"{folder}/etcd", [_ETCD])
    _go(go, "policies", "", f"{folder}/", _POLICIES)
    where = ["list", "-m", "-f", "{{.Dir}}", _CALICO]
    found = subprocess.run([go, *where], cwd=HERE / "policies", capture_output=True, text=True, check=True)
    shutil.copyfile(Path(found.stdout.strip(), "manifests/crds.yaml"), folder / "calico-crds.yaml")
    (folder / "built").touch()


def _go(go: str, module: str, of: str, to: str, packages: list[str]) -> None:
    command = [go, "build", "-buildvcs=false", "-trimpath", f"-ldflags=-s -w {of}", "-o", to, *packages]
    _run(command, HERE / module, os.environ | {"CGO_ENABLED": "0"})


def system() -> None:
    """Packages that are missing are installed, which takes root."""
    missing = sorted(package for program, package in _NEEDED.items() if not shutil.which(program, path=_path()))
    if not missing:
        return
    if os.geteuid() or not shutil.which("apt-get"):
        raise CannotBe(f"this needs {', '.join(missing)} of Debian: as root, apt-get install {' '.join(missing)}")
    _tell(f"installing packages of the system: {' '.join(missing)}")
    quietly = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
    _run(["apt-get", "update", "-qq"], HERE, quietly)
    _run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], HERE, quietly)


def _path() -> str:
    return os.environ["PATH"] + ":/usr/sbin:/sbin"


def _run(command: list[str], folder: Path, environment: dict[str, str]) -> None:
    began = told = time.monotonic()
    with (cache() / "kubernetes.log").open("w+") as said:
        process = subprocess.Popen(command, cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT)
        while process.poll() is None:
            time.sleep(0.2)
            if time.monotonic() - told > _EVERY:
                told = time.monotonic()
                _tell(f"{' '.join(command[:2])}: {told - began:.0f} s")
        if process.returncode:
            said.seek(0)
            raise CannotBe(f"{' '.join(command)[:200]}: {said.read()[-2000:]}")


def _tell(line: str) -> None:
    sys.stderr.write(f"{line} …\n")
    sys.stderr.flush()


if __name__ == "__main__":
    try:
        system()
        print(programs())
    except CannotBe as error:
        sys.exit(str(error))
