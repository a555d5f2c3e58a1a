"""The control plane: etcd, the API server, controllers, scheduler, and DNS beside them, on the machine's network."""

import time
from pathlib import Path

from build import CannotBe
from machine import Machine
from pki import Authority

ADDRESS = "10.200.0.1"
PODS, SERVICES, DOMAIN = "10.244.0.0/16", "10.96.0.0/16", "cluster.local"
_API = f"https://{ADDRESS}:6443"
_ETCD, _ETCD_PEER = "http://127.0.0.1:2379", "http://127.0.0.1:2380"
_FIRST_SERVICE = "10.96.0.1"
_WITHIN = 120.0
_COREFILE = """.:53 {
  errors
  ready
  kubernetes DOMAIN in-addr.arpa {
    kubeconfig KUBECONFIG
    ttl 1
  }
  cache 1
}
"""


class Control:
    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.authority = Authority(machine.folder / "pki", _API)
        self.admin = self.authority.kubeconfig("admin", "admin", "system:masters")

    def start(self) -> None:
        machine, authority = self._machine, self.authority
        machine.run("ip", "address", "add", f"{ADDRESS}/32", "dev", "lo")
        # There is no outside; but pods are answered for their gateway only by who has a way there.
        machine.run("ip", "link", "add", "outside", "type", "bridge")
        machine.run("ip", "link", "set", "outside", "up")
        machine.run("ip", "route", "add", "default", "dev", "outside", "src", ADDRESS)
        names = [f"kubernetes{end}" for end in ("", ".default", ".default.svc", f".default.svc.{DOMAIN}")]
        authority.certificate(
            "api", "kube-apiserver", hosts=[*names, "localhost", ADDRESS, _FIRST_SERVICE, "127.0.0.1"]
        )
        authority.certificate("to-nodes", "kube-apiserver-kubelet-client", "system:masters")
        self._etcd()
        self.api_begins()
        self.api_answers()
        for short in ("controller-manager", "scheduler"):
            authority.kubeconfig(short, f"system:kube-{short}")
        self._controllers()
        conf = authority.folder / "scheduler.conf"
        machine.begin("scheduler", "kube-scheduler", f"--kubeconfig={conf}", *_trusting(conf), "--leader-elect=false")
        self._dns()

    def _etcd(self) -> None:
        self._machine.begin(
            "etcd", "etcd", "--name=one", f"--data-dir={self._machine.folder}/etcd", f"--listen-client-urls={_ETCD}",
            f"--advertise-client-urls={_ETCD}", f"--listen-peer-urls={_ETCD_PEER}", "--unsafe-no-fsync",
            f"--initial-advertise-peer-urls={_ETCD_PEER}", f"--initial-cluster=one={_ETCD_PEER}", "--log-level=warn",
        )  # fmt: skip

    def api_begins(self) -> None:
        pki = self.authority.folder
        self._machine.begin(
            "api", "kube-apiserver", f"--etcd-servers={_ETCD}", f"--advertise-address={ADDRESS}",
            f"--service-cluster-ip-range={SERVICES}", "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            "--enable-admission-plugins=NodeRestriction", f"--client-ca-file={pki}/ca.crt", "--profiling=false",
            f"--requestheader-client-ca-file={pki}/ca.crt", "--requestheader-allowed-names=nobody",
            f"--tls-cert-file={pki}/api.crt", f"--tls-private-key-file={pki}/api.key",
            f"--kubelet-certificate-authority={pki}/ca.crt", f"--kubelet-client-certificate={pki}/to-nodes.crt",
            f"--kubelet-client-key={pki}/to-nodes.key", "--kubelet-preferred-address-types=InternalIP",
            f"--service-account-issuer=https://kubernetes.default.svc.{DOMAIN}",
            f"--service-account-key-file={pki}/accounts.pub", f"--service-account-signing-key-file={pki}/accounts.key",
        )  # fmt: skip

    def api_killed(self) -> None:
        self._machine.signal("api", "SIGKILL")

    def api_answers(self) -> None:
        until = time.monotonic() + _WITHIN
        while True:
            try:
                self._machine.run("kubectl", f"--kubeconfig={self.admin}", "get", "--raw", "/readyz")
                return
            except CannotBe:
                if time.monotonic() > until:
                    raise
                time.sleep(0.3)

    def _controllers(self) -> None:
        pki = self.authority.folder
        conf = pki / "controller-manager.conf"
        self._machine.begin(
            "controllers", "kube-controller-manager", f"--kubeconfig={conf}", *_trusting(conf), "--leader-elect=false",
            f"--service-account-private-key-file={pki}/accounts.key", f"--root-ca-file={pki}/ca.crt",
            "--use-service-account-credentials=true", "--allocate-node-cidrs=true", f"--cluster-cidr={PODS}",
            "--node-cidr-mask-size=24", f"--service-cluster-ip-range={SERVICES}",
        )  # fmt: skip

    def _dns(self) -> None:
        """It goes on with what it knows while the API server is away."""
        words = {"DOMAIN": DOMAIN, "KUBECONFIG": str(self.authority.kubeconfig("dns", "dns"))}
        text = _COREFILE
        for word, meant in words.items():
            text = text.replace(word, meant)
        corefile = self._machine.folder / "Corefile"
        corefile.write_text(text)
        self._machine.begin("dns", "dns", "-conf", corefile)


def _trusting(conf: Path) -> list[str]:
    local = "--bind-address=127.0.0.1"
    return [f"--authentication-kubeconfig={conf}", f"--authorization-kubeconfig={conf}", local]
