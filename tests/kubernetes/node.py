"""A node: containerd, kubelet, kube-proxy and Calico's Felix, on a network of its own (the first: on the machine's),
with a folder and a cgroup of its own. Networks of nodes are joined by a link that can be cut."""

import json
import shutil
from pathlib import Path

from control import ADDRESS, DOMAIN, PODS, Control
from machine import Machine

_LINK_HERE, _LINK_THERE = "10.200.1.1", "10.200.1.2"
_NO_FILESYSTEMS = [f"io.containerd.snapshotter.v1.{one}" for one in ("aufs", "btrfs", "devmapper", "zfs")]
PAUSE = "docker.io/library/pause:1"


class Node:
    def __init__(self, machine: Machine, control: Control, number: int) -> None:
        self.name = f"node-{number}"
        self.network = self.name if number > 1 else None
        self.address = f"{ADDRESS.rpartition('.')[0]}.{number}"
        self._machine, self._control = machine, control
        self._folder = machine.folder / self.name
        self._socket = f"/run/{self.name}.sock"

    def start(self, programs: Path) -> None:
        """Its containers can be started; `join` makes it one of the cluster."""
        self._folder.mkdir()
        if self.network:
            self._wire()
        for setting in ("net.ipv4.ip_forward=1", "net.ipv4.conf.all.rp_filter=0"):
            self._run("sysctl", "-qw", setting)
        self._plugins(programs)
        self._begin("containerd", "containerd", "--config", self._containerd())

    def join(self) -> None:
        authority = self._control.authority
        authority.certificate(f"{self.name}-server", self.name, hosts=[self.name, self.address])
        kubelet = authority.kubeconfig(self.name, f"system:node:{self.name}", "system:nodes")
        proxy = authority.kubeconfig(f"{self.name}-proxy", "system:kube-proxy")
        self._begin(
            "kubelet", "kubelet", f"--config={self._kubelet()}", f"--kubeconfig={kubelet}", f"--node-ip={self.address}",
            f"--hostname-override={self.name}", f"--root-dir={self._folder}/kubelet",
            f"--cert-dir={self._folder}/kubelet-pki",
        )  # fmt: skip
        self._begin("proxy", "kube-proxy", f"--config={self._proxy(proxy)}")
        self._felix()

    def _run(self, *command: str | Path, given: str | None = None) -> str:
        return self._machine.run(*command, network=self.network, given=given)

    def _begin(self, name: str, *command: str | Path, **environment: str) -> None:
        self._machine.begin(f"{self.name}-{name}", *command, network=self.network, **environment)

    # -- network -----------------------------------------------------------------------------------------------------

    def _wire(self) -> None:
        """A link to the first node, whose ends have addresses of their own: those of nodes stay when it is cut."""
        run = self._machine.run
        run("ip", "netns", "add", self.name)
        run("ip", "link", "add", self.name, "type", "veth", "peer", "name", "uplink", "netns", self.name)
        run("ip", "address", "add", f"{_LINK_HERE}/30", "dev", self.name)
        run("ip", "link", "set", self.name, "up")
        run("ip", "route", "add", self.address, "via", _LINK_THERE, "src", ADDRESS)
        for words in (
            "link set lo up",
            f"address add {self.address}/32 dev lo",
            f"address add {_LINK_THERE}/30 dev uplink",
            "link set uplink up",
            f"route add default via {_LINK_HERE} src {self.address}",
        ):
            run("ip", "-n", self.name, *words.split())

    def route(self, pods: str) -> None:
        """To the pods of this node, from the first."""
        self._machine.run("ip", "route", "add", pods, "via", _LINK_THERE, "src", ADDRESS)

    def cut(self) -> None:
        """Silently, as a cable is."""
        rules = [
            "add table inet cut",
            "add chain inet cut coming { type filter hook prerouting priority -400; }",
            "add chain inet cut going { type filter hook postrouting priority 400; }",
            f'add rule inet cut coming iifname "{self.name}" drop',
            f'add rule inet cut going oifname "{self.name}" drop',
        ]
        self._machine.run("nft", "-f", "-", given="\n".join(rules) + "\n")

    def heal(self) -> None:
        self._machine.run("nft", "delete", "table", "inet", "cut")

    # -- what runs there ---------------------------------------------------------------------------------------------

    def ctr(self, *words: str | Path) -> str:
        return self._run("ctr", "--address", self._socket, "--namespace", "k8s.io", *words)

    def _plugins(self, programs: Path) -> None:
        (self._folder / "cni").mkdir()
        (self._folder / "cni-programs").mkdir()
        for plugin in ("loopback", "host-local", "portmap"):
            (self._folder / "cni-programs" / plugin).symlink_to(f"/usr/lib/cni/{plugin}")
        shutil.copy(programs / "calico", self._folder / "cni-programs")
        calico = {
            "type": "calico",
            "log_level": "warning",
            "log_file_path": str(self._machine.folder / "log" / f"{self.name}-cni"),
            "datastore_type": "kubernetes",
            "nodename": self.name,
            "nodename_file_optional": True,
            "mtu": 1500,
            "ipam": {"type": "host-local", "subnet": "usePodCidr", "dataDir": str(self._folder / "ipam")},
            "policy": {"type": "k8s"},
            "kubernetes": {"kubeconfig": str(self._control.admin)},
        }
        both = {"name": "pods", "cniVersion": "0.3.1", "plugins": [calico]}
        (self._folder / "cni/pods.conflist").write_text(json.dumps(both))

    def _containerd(self) -> Path:
        file = self._folder / "containerd.toml"
        file.write_text(f"""version = 2
root = "{self._folder}/containerd"
state = "/run/{self.name}"
disabled_plugins = {json.dumps(_NO_FILESYSTEMS)}
[grpc]
  address = "{self._socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{self._folder}/cni-programs"
    conf_dir = "{self._folder}/cni"
""")
        return file

    def _kubelet(self) -> Path:
        pki = self._control.authority.folder
        (self._folder / "resolv.conf").write_text("")
        return self._json(
            "kubelet.json",
            {
                "apiVersion": "kubelet.config.k8s.io/v1beta1",
                "kind": "KubeletConfiguration",
                "containerRuntimeEndpoint": f"unix://{self._socket}",
                "cgroupDriver": "cgroupfs",
                "cgroupRoot": self._machine.cgroup(self.name),
                "failCgroupV1": False,
                "failSwapOn": False,
                "clusterDNS": [ADDRESS],
                "clusterDomain": DOMAIN,
                "resolvConf": str(self._folder / "resolv.conf"),
                "authentication": {
                    "anonymous": {"enabled": False},
                    "webhook": {"enabled": True},
                    "x509": {"clientCAFile": str(self._control.authority.ca)},
                },
                "authorization": {"mode": "Webhook"},
                "tlsCertFile": str(pki / f"{self.name}-server.crt"),
                "tlsPrivateKeyFile": str(pki / f"{self.name}-server.key"),
                "evictionHard": {"memory.available": "200Mi"},
                "imageGCHighThresholdPercent": 100,
                "serializeImagePulls": False,
                "nodeStatusUpdateFrequency": "5s",
                "syncFrequency": "10s",  # new contents of Secrets come to pods sooner than in a minute
                "podLogsDir": str(self._folder / "logs"),
                "volumePluginDir": str(self._folder / "volume-plugins"),
            },
        )

    def _proxy(self, conf: Path) -> Path:
        untouched = {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"}
        return self._json(
            "proxy.json",
            {
                "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
                "kind": "KubeProxyConfiguration",
                "mode": "iptables",
                "clusterCIDR": PODS,
                "hostnameOverride": self.name,
                "clientConnection": {"kubeconfig": str(conf)},
                "conntrack": untouched,
            },
        )

    def _felix(self) -> None:
        settings = {
            "DATASTORETYPE": "kubernetes",
            "FELIXHOSTNAME": self.name,
            "LOGFILEPATH": "none",
            "LOGSEVERITYFILE": "none",
            "LOGSEVERITYSYS": "none",
            "LOGSEVERITYSCREEN": "warning",
            "IPTABLESBACKEND": "NFT",
            "IPV6SUPPORT": "false",
            "IGNORELOOSERPF": "true",
            "MTUIFACEPATTERN": "^(outside|uplink)$",
            "USAGEREPORTINGENABLED": "false",
        }
        environment = {f"FELIX_{name}": value for name, value in settings.items()}
        self._begin("felix", "calico-felix", KUBECONFIG=str(self._control.admin), **environment)

    def _json(self, name: str, content: dict[str, object]) -> Path:
        file = self._folder / name
        file.write_text(json.dumps(content, indent=1))
        return file
