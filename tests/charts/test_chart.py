"""The chart: what it renders is valid, always the same, hardened, and understood by brokers; mistakes are told."""

import os
import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from charts.rendering import CHART, VALUES, VERSIONS, WITHOUT_SCHEMA, helm, objects, pods, refused, rendered

from mercast.broker.config import BrokerConfig, load
from mercast.broker.config_schema import put_into
from mercast.cli import app
from mercast.security.secret_plan import read_plan

HERE = Path(__file__).parent
NAMED = {file.stem: file for file in VALUES}
GOLDEN = ("default", "production")

all_values = pytest.mark.parametrize("values", VALUES, ids=lambda file: file.stem)


def test_helm_finds_nothing_to_say():
    done = helm("lint", "--strict", "--kube-version", VERSIONS[-1], str(CHART))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("version", VERSIONS)
def test_kubernetes_accepts_what_is_rendered(version):
    """Of all values at once: most of what they lead to is the same."""
    found = {str(one): one for values in VALUES for one in objects(values, version)}
    assert len(found) > 100
    for one in found.values():
        if one["kind"] not in WITHOUT_SCHEMA:
            kubernetes_validate.validate(one, version, strict=True)


@all_values
def test_rendered_twice_it_is_the_same(values):
    again = helm("template", "mercast", str(CHART), "-n", "a", "--kube-version", VERSIONS[-1], "-f", str(values))
    assert again.stdout == rendered(values)


@all_values
def test_no_two_things_have_one_name(values):
    names = [
        (one["kind"], one["metadata"].get("namespace"), one["metadata"]["name"])
        for one in objects(values)
    ]  # fmt: skip
    assert len(names) == len(set(names))
    assert all(namespace for _, namespace, _ in names)


@all_values
def test_every_pod_is_hardened(values):
    found = pods(values)
    assert found
    for name, spec in found:
        inside = spec["securityContext"]
        assert inside["runAsNonRoot"] is True, name
        assert inside["seccompProfile"] == {"type": "RuntimeDefault"}, name
        assert spec["enableServiceLinks"] is False, name
        assert spec["automountServiceAccountToken"] == ("serviceAccountName" in spec), name
        for container in spec["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }, name
            mounted = {mount["name"] for mount in container["volumeMounts"]}
            assert mounted >= {volume["name"] for volume in spec["volumes"]}, name


@all_values
def test_brokers_understand_their_configuration(values, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    monkeypatch.setenv("POD_NAMESPACE", "a")
    monkeypatch.setenv("POD_IP", "10.1.2.3")
    found = [one for one in objects(values) if "broker.yaml" in one.get("data", {})]
    assert found
    for one in found:
        monkeypatch.setenv("POD_NAME", f"{one['metadata']['name']}-0")
        text = one["data"]["broker.yaml"].replace("/etc/", f"{tmp_path}/etc/")
        for mounted in map(Path, re.findall(rf"{tmp_path}\S+", text)):
            mounted.parent.mkdir(parents=True, exist_ok=True)
            mounted.write_text("something")
        file = tmp_path / "broker.yaml"
        file.write_text(text)
        config = load(file, {})
        assert config.cluster == one["metadata"]["labels"]["mercast/cluster"]
        assert bool(config.joins) == one["metadata"]["name"].endswith("-edge")


@all_values
def test_the_job_understands_its_plan(values, tmp_path):
    plans = [one["data"]["plan.yaml"] for one in objects(values) if "plan.yaml" in one.get("data", {})]
    security = yaml.safe_load(values.read_text()).get("security", {})
    by_job = [security.get(what, {}).get("mode", "job") == "job" for what in ("tls", "tokens")]
    assert len(plans) == any(by_job)
    for text in plans:
        file = tmp_path / "plan.yaml"
        file.write_text(text)
        plan = read_plan(file)
        assert [plan.ca is not None, plan.tokens is not None] == by_job
        secrets = {(one.namespace, one.name) for one in plan.certificates}
        mounted = {
            (one["metadata"]["namespace"], volume["secret"]["secretName"])
            for one in objects(values)
            if one["kind"] == "StatefulSet"
            for volume in one["spec"]["template"]["spec"]["volumes"]
            if volume["name"] == "tls"
        }
        assert secrets == (mounted if plan.ca else set())


@all_values
def test_commands_understand_their_flags(values):
    for name, spec in pods(values):
        for container in spec["containers"]:
            if "args" in container:
                app.parse_args(container["args"], exit_on_error=False, print_error=False)
            else:
                assert name in (
                    "Pod/mercast-test",
                    "Pod/events-test",
                    "Pod/mercast-events-test",
                    "ConfigMap/mercast-executors",
                )


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_files(name):
    """REWRITE=1 makes them anew: read the difference before you commit it."""
    golden = HERE / f"golden/{name}.yaml"
    if os.environ.get("REWRITE"):
        golden.write_text(rendered(NAMED[name]))
    assert rendered(NAMED[name]) == golden.read_text()


def test_the_schema_knows_the_configuration_of_brokers():
    """`make docs` makes it anew."""
    file = CHART / "values.schema.json"
    assert put_into(file.read_text()) == file.read_text()


def test_every_value_has_a_place_in_the_values_and_the_other_way_round():
    """What the schema allows beyond them is of pods, and told there."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    assert values.keys() | {"global"} == schema["properties"].keys()
    pod = values["brokers"].keys() - {"replicas"}
    for name, one in values.items():
        known = schema["properties"][name].get("properties")
        if known and one:
            assert set(known) - pod == one.keys() - pod, name


def test_nothing_but_whole_objects_in_the_schema():
    """Else a word that is misspelt would be passed over."""
    schema = yaml.safe_load((CHART / "values.schema.json").read_text())
    places = [schema]
    while places:
        place = places.pop()
        if "properties" in place:
            assert place["additionalProperties"] is False
            places += place["properties"].values()
        places += place.get("definitions", {}).values()
        places += [place["items"]] if "items" in place else []


UNKNOWN = r"[Aa]dditional propert(ies '{0}' not|y {0} is not) allowed"
LEAST, MOST = "minimum: got|Must be greater than", "maximum: got|Must be less than"
"""In the words of Helm from 3.18 on, and of those before."""


def by_schema(place, told, *about):
    return rf"(at '/{place}'|{place.replace('/', '.')}): .*({told.format(*about)})"


MISTAKES = {
    "broker: {replicas: 3}": UNKNOWN.format("broker"),
    "brokers: {replica: 3}": by_schema("brokers", UNKNOWN, "replica"),
    "brokers: {replicas: 0}": by_schema("brokers/replicas", LEAST),
    "brokers: {replicas: 40000}": by_schema("brokers/replicas", MOST),
    "brokers: {replicas: three}": by_schema("brokers/replicas", "got string, want integer|given: string"),
    "strategy: magic": by_schema("strategy", "must be one of.* ['\"]ddbr['\"], ['\"]merc['\"],"),
    "cluster: {name: Orders}": by_schema("cluster/name", "oes not match pattern"),
    "clusters: [{name: a}]": by_schema("clusters/0", "missing property 'number'|number is required"),
    "config: {listen: 0.0.0.0:1}": by_schema("config", UNKNOWN, "listen"),
    "config: {max_client: 5}": by_schema("config", UNKNOWN, "max_client"),
    "config: {max_clients: 0}": by_schema("config/max_clients", LEAST),
    "config: {link_queue_bytes: 5}": by_schema("config/link_queue_bytes", LEAST),
    "config: {log_level: loud}": by_schema("config/log_level", "must be one of.* ['\"]debug['\"], ['\"]info['\"],"),
    "security: {tls: {mode: none}}": by_schema("security/tls/mode", "must be one of.* ['\"]job['\"],"),
    "kafka: {address: kafka://k:9092}": by_schema("kafka/address", "oes not match pattern"),
    "backbone: {seeds: [other]}": by_schema("backbone/seeds/0", "oes not match pattern"),
    "metrics: {executors: {memory: much}}": by_schema("metrics/executors/memory", "oes not match pattern"),
    "clusters: [{name: a, number: 1}, {name: b, number: 1}]": "clusters: two of them have the number 1",
    "clusters: [{name: a, number: 1}, {name: a, number: 2}]": "clusters: two of them have the name a",
    "clusters: [{name: b, number: 1}]": "none of them is in the release's namespace, a",
    "cluster: {number: 1000}": "that is the backbone, which has a name and a number of its own",
    "cluster: {number: 400}": "gives brokers numbers above 32766",
    "brokers: {replicas: 99}": "99 brokers and 2 edges are more than idsPerCluster, 100",
    "strategy: ddbr": "strategy ddbr knows one cluster only: use merc, or set edges.replicas to 0",
    "kafka: {address: 'k:1', singleNode: {enabled: true}}": "give the address of your own, or singleNode.enabled,",
    "metrics: {enabled: true}": "give kafka.address, or kafka.singleNode.enabled",
    "metrics: {executors: {enabled: true}}": "give metrics.checkpoint on a file system that all reach",
    "security: {tls: {secrets: {broker: x, edge: x}}}": "give two names, or none",
    "security: {tls: {mode: certManager}}": "security.tls.issuer.name must name the Issuer or ClusterIssuer",
}  # fmt: skip


@pytest.mark.parametrize("values", MISTAKES)
def test_mistakes_are_told(values):
    assert re.search(MISTAKES[values], refused(values))


def test_names_of_digits_and_dots_are_names():
    for release, called in (("12", "12-mercast"), ("my.events", "my-events-mercast")):
        done = helm("template", release, str(CHART), "-n", "34", "--kube-version", VERSIONS[-1])
        found = [one for one in yaml.safe_load_all(done.stdout) if one]
        assert called in {one["metadata"]["name"] for one in found if one["kind"] == "Service"}
        for one in found:
            kubernetes_validate.validate(one, VERSIONS[-1], strict=True)
            assert one["metadata"]["namespace"] == "34"
            assert one["metadata"]["labels"]["app.kubernetes.io/instance"] == release


def test_labels_that_are_given_twice_or_are_the_charts_own():
    values = """
      commonLabels: {team: all, cost: "1", app.kubernetes.io/name: other}
      brokers: {podLabels: {team: brokers, mercast/role: other}}
    """
    done = helm("template", "mercast", str(CHART), "-n", "a", "--kube-version", VERSIONS[-1], "-f", "-", given=values)
    (pod,) = (
        one["spec"]["template"]["metadata"]["labels"]
        for one in yaml.safe_load_all(done.stdout)
        if one and one["kind"] == "StatefulSet" and one["metadata"]["name"] == "mercast-broker"
    )
    assert done.stdout.count("team: brokers") == 1
    given = {key: pod[key] for key in ("team", "cost", "app.kubernetes.io/name", "mercast/role")}
    assert given == {"team": "brokers", "cost": "1", "app.kubernetes.io/name": "mercast", "mercast/role": "broker"}


def test_settings_of_spark_may_have_any_characters():
    values = """
      kafka: {address: "k:1"}
      metrics: {enabled: true, kafkaConf: {sasl.jaas.config: 'Login required user="a: b" # c;'}}
    """
    done = helm("template", "mercast", str(CHART), "-n", "a", "--kube-version", VERSIONS[-1], "-f", "-", given=values)
    (words,) = (
        one["spec"]["template"]["spec"]["containers"][0]["args"]
        for one in yaml.safe_load_all(done.stdout)
        if one and one["metadata"]["name"] == "mercast-metrics" and one["kind"] == "Deployment"
    )
    assert '--kafka-conf=sasl.jaas.config=Login required user="a: b" # c;' in words


def test_what_may_be_read_and_written_by_whom():
    """Brokers read pods; only the job has to do with Secrets, with few by name; only the driver of Spark makes pods."""
    rights = {
        (one["metadata"]["namespace"], one["metadata"]["name"], *rule["resources"], *rule["verbs"])
        for values in ("clusters", "executors")
        for one in objects(NAMED[values])
        if one["kind"] == "Role"
        for rule in one["rules"]
    }
    brokers = [("mercast-members", "pods", "get", "list", "watch")]
    job = [("mercast-secrets", "secrets", "create"), ("mercast-secrets", "secrets", "get", "update")]
    spark = [
        ("mercast-metrics", "pods", "get", "list", "watch", "create", "delete", "deletecollection", "patch"),
        ("mercast-metrics", "configmaps", "get", "list", "create", "delete", "deletecollection"),
    ]
    assert rights == {("a", *one) for one in (*brokers, *job, *spark)} | {("b", *one) for one in (*brokers, *job)}
    assert "ClusterRole" not in {one["kind"] for values in VALUES for one in objects(values)}


def test_the_ca_is_for_the_job_alone():
    for values in VALUES:
        for name, spec in pods(values):
            assert "mercast-ca" not in str(spec), name
    named = {
        one["metadata"]["namespace"]: one["rules"][1]["resourceNames"]
        for one in objects(NAMED["clusters"])
        if one["kind"] == "Role" and one["metadata"]["name"] == "mercast-secrets"
    }
    others = ["mercast-broker-tls", "mercast-edge-tls", "mercast-tokens"]
    assert named == {"a": [*others, "mercast-ca"], "b": others}


def test_the_time_to_leave_is_enough():
    specs = dict(pods(NAMED["production"]))
    spec = specs["StatefulSet/mercast-broker"]
    sleeps = spec["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]
    assert spec["terminationGracePeriodSeconds"] > sleeps + 20.5
    assert BrokerConfig.model_fields["drain_seconds"].default == 5  # which the chart takes for granted
    assert dict(pods(NAMED["default"]))["StatefulSet/mercast-broker"]["terminationGracePeriodSeconds"] == 3 + 5 + 10


def test_the_version_of_the_chart_is_that_of_mercast():
    from mercast import __version__

    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert (chart["version"], chart["appVersion"]) == (__version__, __version__)


def test_documents_name_what_there_is():
    documents = (CHART.parents[1] / "docs/kubernetes.md").read_text() + (
        CHART.parents[1] / "docs/operations.md"
    ).read_text()
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    for path in set(
        re.findall(
            r"`((?:brokers|edges|backbone|security|kafka|metrics|monitoring|networkPolicy|load|test)\.[\w.]+)`",
            documents,
        )
    ):
        place = values
        for word in path.split("."):
            assert word in place, path
            place = place[word]
