"""Who may connect where, and who may ask the API for what: denials are seen, not only declared."""

import pytest
from pods import CLIENT, ended, pod, run

_TRY = """
import os, socket

socket.getaddrinfo(os.environ["HOST"], None)  # that it cannot be found would be no denial
for port in (7470, 7471, 7472):
    for _ in range(3):  # it takes a moment until the policies know of a pod
        try:
            socket.create_connection((os.environ["HOST"], port), 3).close()
        except OSError:
            continue
        print(port)
        break
print("tried")
"""
_HOST = [{"name": "HOST", "value": "mercast-broker-0.mercast-peers.b.svc"}]


@pytest.mark.parametrize(
    ("namespace", "labels", "reached"),
    [
        ("a", {}, []),
        ("a", CLIENT, ["7470"]),
        ("b", CLIENT, ["7470"]),
        ("orders", CLIENT, []),
        ("monitoring", {}, ["7472"]),
    ],
    ids=["no label", "a client", "a client of the same namespace", "a client from elsewhere", "monitoring"],
)
def test_ports_are_reached_by_whom_they_are_for(cluster, stories, images, table, namespace, labels, reached):
    made = pod(namespace, "caller", images.mercast, command=["python3", "-c", _TRY], env=_HOST, labels=labels)
    run(cluster, made)
    status, said = ended(cluster, namespace, "caller", 120)
    cluster.kubectl("delete", "pod", "-n", namespace, "caller")
    assert (status, said.split()) == (0, [*reached, "tried"])
    told = ", ".join(reached) or "none"
    what = f"NetworkPolicy: a pod in `{namespace}`" + (" with the client's label" if labels else " without the label")
    table.tell(f"{what} calls the ports of a broker in `b`", f"reached: {told}")


def test_the_account_of_a_broker_may_read_pods_and_nothing_else(cluster, stories, table):
    """Asked with its own token."""
    token = cluster.kubectl("create", "token", "-n", "a", "mercast-broker").strip()
    ask = [f"--token={token}", "--kubeconfig=/dev/null", f"--server={cluster.server()}", "--insecure-skip-tls-verify"]
    assert "mercast-broker-0" in cluster.kubectl("get", "pods", "-n", "a", *ask)
    refused = [
        ("get", "secrets", "-n", "a"),
        ("get", "pods", "-n", "b"),
        ("get", "nodes"),
        ("delete", "pod", "mercast-broker-0", "-n", "a"),
    ]
    for words in refused:
        assert "Forbidden" in cluster.refuses(*words, *ask)
    table.tell(
        "RBAC: the account of a broker of `a`, with its token", f"may get pods of `a`; {len(refused)} others refused"
    )
