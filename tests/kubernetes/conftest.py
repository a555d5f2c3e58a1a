"""A Kubernetes for all tests here, with the images in it; a release that faults happen to; the table of what was seen.

`make test-kubernetes` runs all of it, `make test-kubernetes ONLY=edge` those tests whose names have the word. A cluster
that KUBECONFIG names is used as it is: IMAGE and SPARK_IMAGE name images that its nodes can get (PREVIOUS_IMAGE, if
there is an older one), and what takes a cluster of our own is skipped.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from archives import Images, current, current_names, pause, previous
from build import VERSION, CannotBe
from chart import Release
from cluster import Cluster, given, of_our_own, tell
from load import RATE
from report import Table
from story import IN_FLIGHT, ROUTE_CHANGE, Stories
from watching import NAMESPACE, Watch

NUMBERS = {"a": 1, "b": 2}
_MOST_OF_A_KIND = 3
_KEPT = Path(__file__).parents[2] / "build/kubernetes-faults.json"


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    try:
        if os.environ.get("KUBECONFIG"):
            with given() as found:
                yield found
        else:
            with of_our_own(pause) as made:
                yield made
    except CannotBe as error:
        pytest.exit(str(error), 2)


@pytest.fixture(scope="session")
def images(cluster: Cluster) -> Images:
    """On all nodes; the larger one on the first only."""
    if cluster.own is None:
        names = [os.environ.get(name, "") for name in ("IMAGE", "SPARK_IMAGE", "PREVIOUS_IMAGE")]
        if not all(names[:2]):
            pytest.exit("with KUBECONFIG, IMAGE and SPARK_IMAGE must name images that its nodes can get", 2)
        return Images(*names)
    plain, spark = current()
    cluster.own.bring(plain)
    cluster.own.bring(spark, cluster.own.nodes[:1])
    tell("images are on the nodes")
    return Images(*current_names(), previous="")


@pytest.fixture(scope="session")
def older(cluster: Cluster, images: Images) -> str:
    """The image of the commit before, and where it is from."""
    if cluster.own is None:
        if not images.previous:
            pytest.skip("PREVIOUS_IMAGE is not given")
        return images.previous
    archive, commit = previous()
    cluster.own.bring(archive)
    tell(f"mercast:previous is of {commit[:12]}")
    return "mercast:previous"


@pytest.fixture(scope="session")
def namespaces(cluster: Cluster) -> Iterator[list[str]]:
    """Of the run's own; they are gone afterwards, with all that is in them."""
    names = [*NUMBERS, "orders", "billing", NAMESPACE]
    taken = {one["metadata"]["name"] for one in cluster.get("namespaces")["items"]} & set(names)
    if taken and cluster.own is None:
        found = ", ".join(sorted(taken))
        pytest.exit(f"namespaces {found} are there already; if an earlier run left them, delete them", 2)
    cluster.apply(*({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}} for name in names))
    yield names
    if cluster.own is None:
        cluster.kubectl("delete", "namespace", *names, "--wait=true", within=300)


@pytest.fixture(scope="session")
def values(cluster: Cluster, images: Images) -> dict[str, object]:
    """Of all releases."""
    found = {}
    for key, name in (("image", images.mercast), ("sparkImage", images.spark)):
        repository, _, tag = name.rpartition(":")
        found[key] = {"repository": repository, "tag": tag}
    return found | {"brokers": {"replicas": 2}, "edges": {"replicas": 2}}


@pytest.fixture(scope="session")
def release(cluster: Cluster, namespaces: list[str], values: dict[str, object]) -> Iterator[Release]:
    """One with two clusters and Kafka, whose pages and metrics may be read from the namespace `monitoring`."""
    own = {"kubernetes.io/hostname": "node-1"} if cluster.own else {}
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}
    made = Release(
        cluster,
        "a",
        values
        | {
            "clusters": [{"name": name, "number": number} for name, number in NUMBERS.items()],
            "kafka": {"singleNode": {"enabled": True, "nodeSelector": own}},
            "metrics": {"nodeSelector": own},
            "dashboard": {"nodeSelector": own},
            "networkPolicy": {"dashboardFrom": [monitoring]},
        },
    )
    made.install()
    tell("one release with two clusters is installed")
    yield made
    made.uninstall()


_TABLE = Table(
    _KEPT,
    {"version": VERSION, "rate": RATE, "cores": os.cpu_count(), "in_flight": IN_FLIGHT, "route_change": ROUTE_CHANGE},
)


@pytest.fixture(scope="session")
def table() -> Table:
    return _TABLE


def pytest_collection_finish(session: pytest.Session) -> None:
    tests, config = [item.nodeid for item in session.items], session.config
    named = any(word.partition("::")[0].endswith(".py") for word in config.args)
    if named or config.getoption("keyword") or config.getoption("markexpr"):
        _TABLE.go_on(tests)
    else:
        _TABLE.begin(tests)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.when == "call" and report.passed:
        _TABLE.passed(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """The table is of a Kubernetes of our own: another's nodes, load and clocks are not known."""
    if not os.environ.get("KUBECONFIG") and not session.config.getoption("collectonly"):
        tell(_TABLE.end())


@pytest.fixture(scope="session")
def stories(cluster: Cluster, release: Release, images: Images, table: Table) -> Stories:
    watch = Watch(cluster, images.mercast, "a", NUMBERS, _MOST_OF_A_KIND, "node-1" if cluster.own else "")
    watch.start()
    return Stories(cluster, release, watch, images, table)
