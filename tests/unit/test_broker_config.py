"""The configuration of a broker: what wins, and what is said of mistakes."""

import os
import re
from pathlib import Path

import pytest

from mercast.broker.addresses import Address
from mercast.broker.config import MOST_ID, BrokerConfig, ConfigError, load
from mercast.broker.config_docs import document
from mercast.broker.config_sources import environment_variable
from mercast.content.rules import Rules
from mercast.overlay.neighbourhood import Timing
from mercast.overlay.routes import NO_HOP
from mercast.overlay.split import CARRY
from mercast.routing.settings import Settings

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch):
    for name in [name for name in os.environ if name.startswith("MERCAST_")]:
        monkeypatch.delenv(name)


@pytest.fixture
def file(tmp_path):
    def write(text):
        path = tmp_path / "broker.yaml"
        path.write_text(text)
        return path

    return write


def mistakes(file, **flags):
    with pytest.raises(ConfigError) as raised:
        load(file, flags)
    head, *lines = str(raised.value).splitlines()
    assert head == "the configuration is not right:"
    return [line.strip() for line in lines]


def test_defaults_are_those_of_routing():
    config = load(None, {"id": 7})
    assert config == BrokerConfig(id=7)
    assert config.settings() == Settings(sampling=0.0)


def test_later_wins(file, monkeypatch):
    given = file("id: 1\ncluster: from-file\ndegree: 4\nmisses: 9\nheart_beat: 2\n")
    monkeypatch.setenv("MERCAST_CLUSTER", "from-environment")
    monkeypatch.setenv("mercast_degree", "8")
    config = load(given, {"degree": 10, "heart_beat": None})
    assert (config.id, config.cluster, config.degree, config.misses) == (1, "from-environment", 10, 9)
    assert config.settings().timing == Timing(2.0, 9)


def test_all_that_the_strategy_is_told(file):
    text = "id: 1\nrule: covering\nrepair: no\ncovering: yes\nmatcher: scan\nsampling: 0.5\n"
    config = load(file(text + "settle_within: 1\npurge_after: 2\nwait_for_route: 0\nheart_beat: .5\nmisses: 2\n"), {})
    assert config.settings() == Settings(
        timing=Timing(0.5, 2),
        rule="covering",
        repair=False,
        covering=True,
        matcher="scan",
        settle_within=1.0,
        purge_after=2.0,
        wait_for_route=0.0,
        sampling=0.5,
    )


def test_lists_and_sizes_and_nothing_from_variables(monkeypatch):
    monkeypatch.setenv("MERCAST_ID", "0")
    monkeypatch.setenv("MERCAST_MEMBERS", "1=a:5, 2=[::1],")
    monkeypatch.setenv("MERCAST_ADMIN_LISTEN", "")
    monkeypatch.setenv("MERCAST_LINK_QUEUE_BYTES", "64MiB")
    monkeypatch.setenv("MERCAST_RECORD", "")
    monkeypatch.setenv("MERCAST_URL", "a variable of clients")
    monkeypatch.setenv("MERCAST_PORT_7470_TCP", "one that Kubernetes makes up")
    config = load(None, {"seeds": "b:1,c", "peer_listen": "localhost:0"})
    assert config.clusters()[0].members == {1: Address("a", 5), 2: Address("::1", 7471)}
    assert config.seeds == ["b:1", "c:7471"]
    assert (config.admin_listen, config.peer_listen) == ("", "localhost:0")
    assert (config.link_queue_bytes, config.record) == (64 * 1024 * 1024, None)


def test_every_mistake_is_told_with_its_key_and_its_origin(file, monkeypatch):
    given = file("stratgy: fbr\nstrategy: bfr\nmatcher: magic\nrepair: maybe\nsampling: 2\ndegree: 4\nwhatever: 1\n")
    monkeypatch.setenv("MERCAST_DEGREE", "5")
    told = mistakes(given, heart_beat="fast", client_queue_bytes="8 apples", max_clients=0)
    assert told[:-1] == [
        "id is not given: use --id, MERCAST_ID or id in the file",
        f"strategy = 'bfr' ({given}, line 2): there is no strategy 'bfr'; "
        "there are ddbr, merc, fbr, flooding, unicast, static-hash",
        "degree = '5' (MERCAST_DEGREE): expected a multiple of 2",
        "heart_beat = 'fast' (--heart-beat): expected a number",
        f"repair = 'maybe' ({given}, line 4): expected true or false",
        f"matcher = 'magic' ({given}, line 3): expected 'index' or 'scan'",
        f"sampling = 2 ({given}, line 5): expected less than or equal to 1",
        "client_queue_bytes = '8 apples' (--client-queue-bytes): expected a number of bytes, such as 8388608 or 8MiB",
        "max_clients = 0 (--max-clients): expected greater than or equal to 1",
        f"stratgy ({given}, line 1) is unknown: did you mean strategy?",
    ]
    assert told[-1].startswith(
        f"whatever ({given}, line 7) is unknown: there are id, cluster, cluster_number, strategy, "
    )


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"id": 32767}, "id = 32767 (--id): expected less than or equal to 32766"),
        ({"id": -1}, "id = -1 (--id): expected greater than or equal to 0"),
        ({"id": "one"}, "id = 'one' (--id): expected a whole number"),
        ({"cluster": ""}, "cluster = '' (--cluster): expected at least 1 character"),
        ({"degree": 0}, "degree = 0 (--degree): expected greater than or equal to 2"),
        ({"misses": 0}, "misses = 0 (--misses): expected greater than or equal to 1"),
        ({"heart_beat": 0}, "heart_beat = 0 (--heart-beat): expected greater than 0"),
        ({"heart_beat": "nan"}, "heart_beat = 'nan' (--heart-beat): expected a finite number"),
        ({"wait_for_route": -1}, "wait_for_route = -1 (--wait-for-route): expected greater than or equal to 0"),
        (
            {"client_queue_bytes": 65_535},
            "client_queue_bytes = 65535 (--client-queue-bytes): expected greater than or equal to 65536",
        ),
        (
            {"link_queue_bytes": "1MiB"},
            "link_queue_bytes = '1MiB' (--link-queue-bytes): expected greater than or equal to 4194304",
        ),
        (
            {"listen": ""},
            "listen = '' (--listen): '' is not an address: it names no host; write host:port, such as 127.0.0.1:7470",
        ),
        (
            {"admin_listen": "::1"},
            "admin_listen = '::1' (--admin-listen): '::1' is not an address: "
            "IPv6 goes in brackets; write host:port, such as [::1]:7472",
        ),
        (
            {"listen": "0.0.0.0"},
            "advertise = '' (by default): listen is 0.0.0.0:7470, all addresses: say which of them others should use",
        ),
        (
            {"peer_listen": "[::]:1", "advertise": "a:1"},
            "peer_advertise = '' (by default): peer_listen is [::]:1, all addresses: "
            "say which of them others should use",
        ),
        (
            {"advertise": "a:0"},
            "advertise = 'a:0' (--advertise): 'a:0' is nowhere to connect to: "
            "it must name one host and a port other than 0",
        ),
        (
            {"seeds": ["0.0.0.0:1"]},
            "seeds = ['0.0.0.0:1'] (--seeds): '0.0.0.0:1' is nowhere to connect to: "
            "it must name one host and a port other than 0",
        ),
        ({"seeds": ["a", None]}, "seeds[1] = None (--seeds): expected a text"),
        (
            {"members": "a:1"},
            "members = 'a:1' (--members): 'a:1' is not a member: write id=host:port, such as 2=127.0.0.1:7471",
        ),
        (
            {"members": ["32767=a:1"]},
            "members = ['32767=a:1'] (--members): '32767=a:1' is not a member: "
            "write id=host:port, such as 2=127.0.0.1:7471",
        ),
        (
            {"members": ["1=a:1", "01=b:1"]},
            "members = ['1=a:1', '01=b:1'] (--members): broker 1 is given twice",
        ),
        (
            {"types": "/no/such"},
            "types = '/no/such' (--types): there is no such file; expected a YAML file of type declarations",
        ),
        ({"record": "/no/such/file"}, "record = '/no/such/file' (--record): expected a file in a folder that exists"),
        ({"record": Path("/no/such")}, "record = '/no/such' (--record): expected a file in a folder that exists"),
        ({"links": "1-2,3"}, "links = '1-2,3' (--links): '3' is not a link: write id-id of two brokers, such as 1-2"),
        ({"links": "1-1"}, "links = '1-1' (--links): '1-1' is not a link: write id-id of two brokers, such as 1-2"),
        (
            {"links": "1-32767"},
            "links = '1-32767' (--links): '1-32767' is not a link: write id-id of two brokers, such as 1-2",
        ),
        ({"record": "/"}, "record = '/' (--record): expected a file in a folder that exists"),
        ({"colour": "red"}, "colour (--colour) is unknown: did you mean cluster?"),
    ],
)
def test_one_mistake(flags, told):
    assert mistakes(None, **({"id": 1} | flags)) == [told]


def test_to_listen_everywhere_is_right_if_others_are_told_where():
    flags = {"id": 1, "listen": "0.0.0.0", "advertise": "10.0.0.1", "admin_listen": "0.0.0.0:0", "insecure": True}
    config = load(None, flags)
    assert (config.listen, config.advertise) == ("0.0.0.0:7470", "10.0.0.1:7470")


def test_no_broker_has_the_number_that_means_no_route():
    assert {MOST_ID, MOST_ID | CARRY}.isdisjoint({NO_HOP})
    assert (MOST_ID + 1) | CARRY == NO_HOP


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("id: 1\ncluster: a\nid: 2\n", "{}, line 3: id is given twice"),
        ("- id\n", "{} holds a list, expected keys with their values, as in id: 1"),
        ("id: [1\n", "{} is not YAML: "),
    ],
)
def test_files_that_say_nothing_sensible(file, text, told):
    with pytest.raises(ConfigError) as raised:
        load(given := file(text), {})
    assert str(raised.value).startswith(told.format(given))


def test_a_file_that_is_not_there():
    with pytest.raises(ConfigError, match=r"^/no/such\.yaml cannot be read: No such file or directory$"):
        load(Path("/no/such.yaml"), {})


def test_an_empty_file_says_nothing(file):
    assert load(file("# nothing\n"), {"id": 1}) == BrokerConfig(id=1)


def test_types_are_read_from_their_file(file):
    types = file("types: {quote: {attributes: {price: float}}}")
    assert [one.name for one in BrokerConfig(id=1, types=types).declarations()] == ["quote"]
    assert BrokerConfig(id=1).declarations() == []
    types.write_text("types: {quote: {attributes: {price: money}}}")
    with pytest.raises(ConfigError, match=r"^types = '.*broker.yaml': type 'quote': attribute 'price' is 'money'"):
        BrokerConfig(id=1, types=types).declarations()


EDGE = {"id": 7, "strategy": "merc", "cluster": "orders", "cluster_number": 3}


def test_an_edge_is_in_several_clusters_each_with_members_of_its_own():
    config = load(
        None,
        EDGE
        | {
            "joins": "backbone=1000,partner=4",
            "members": "7=a:1,backbone/9=b:2,8=c,backbone/7=a:1",
            "seeds": "partner/d:5",
            "links": "7-8,backbone/7-9",
        },
    )
    assert config.clusters() == (
        ("orders", 3, {7: Address("a", 1), 8: Address("c", 7471)}, [], [(7, 8)]),
        ("backbone", 1000, {9: Address("b", 2), 7: Address("a", 1)}, [], [(7, 9)]),
        ("partner", 4, {}, ["d:5"], []),
    )
    assert config.settings().clusters == (3, 1000, 4)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"joins": "backbone"}, "'backbone' is not a cluster to join: write name=number, such as backbone=1000"),
        ({"joins": "a/b=1"}, "'a/b=1' is not a cluster to join"),
        ({"joins": "b=65536"}, "clusters have numbers from 0 to 65535"),
        ({"joins": "b=1,b=2"}, "'b=2' comes twice: a cluster has a name and a number of its own"),
        ({"joins": "b=1,c=1"}, "'c=1' comes twice"),
        ({"joins": "orders=5"}, "'orders' with number 3 is the broker's own cluster"),
        ({"joins": "b=3"}, "'orders' with number 3 is the broker's own cluster"),
        ({"joins": "b=1", "strategy": "ddbr"}, "strategy ddbr knows one cluster only"),
        ({"members": "b/1=h:1"}, "'b' is no cluster that this broker joins: write joins = ['b=number'] too"),
        ({"seeds": "b/h:1"}, "'b' is no cluster that this broker joins"),
        ({"links": "b/1-2"}, "'b' is no cluster that this broker joins"),
        ({"joins": "b=1", "members": "b/1=h:1,b/1=h:2"}, "broker 1 is given twice"),
        ({"cluster": "a/b"}, "cluster = 'a/b' (--cluster): the name of a cluster has no slash in it"),
        ({"exports": "stock.*.x"}, "'stock.*.x' is not a pattern"),
        ({"imports": "!"}, "'' is not a pattern"),
        ({"joins": "b=1", "imports": "!!x"}, "'!!x' is not a pattern: one ! says what is not carried"),
        ({"exports": "x"}, "only an edge broker carries events between clusters"),
    ],
)
def test_clusters_that_do_not_fit(given, told):
    with pytest.raises(ConfigError) as error:
        load(None, EDGE | given)
    assert told in str(error.value)


def test_an_edge_without_a_number_for_its_own_cluster():
    with pytest.raises(ConfigError, match="an edge's own cluster needs a number that no other has"):
        load(None, {"id": 7, "strategy": "merc", "joins": "backbone=1000"})


@pytest.mark.parametrize(
    ("patterns", "rules"),
    [
        (["*"], Rules(("*",))),
        (["stock.*", "!stock.secret"], Rules(("stock.*",), ("stock.secret",))),
        (["!stock.secret"], Rules(("*",), ("stock.secret",))),
        ([], Rules()),
    ],
)
def test_what_edges_carry(patterns, rules):
    settings = BrokerConfig(id=1, exports=patterns, imports=patterns).settings()
    assert (settings.exports, settings.imports) == (rules, rules)


def test_the_examples_of_clusters_load(file):
    """One broker of a cluster, and an edge."""
    examples = re.findall(r"```yaml\n(.*?)```", (ROOT / "docs/clusters.md").read_text(), re.DOTALL)
    inner, edge = (load(file(example), {}) for example in examples)
    assert [one.name for one in inner.clusters()] == ["orders"]
    assert [(one.name, one.number, set(one.members)) for one in edge.clusters()] == [
        ("orders", 3, {301, 302}),
        ("backbone", 1000, {302, 401}),
    ]


def test_the_document_is_made_from_the_configuration():
    assert (ROOT / "docs/configuration.md").read_text() == document(), "make docs"


def test_the_document_tells_the_truth(file, monkeypatch):
    """Its example loads, and every default that it gives, given as a variable, is the default."""
    text = document()
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)[1]
    assert load(file(example), {}).clusters()[0].members.keys() == {1, 2, 3}
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \| .*? \| (.*?) \| ", text, re.MULTILINE)
    assert [key for key, _, _ in rows] == list(BrokerConfig.model_fields)
    for key, variable, default in rows:
        assert variable == environment_variable(key)
        monkeypatch.setenv(variable, "1" if key == "id" else default.strip("`"))
    assert load(None, {}) == BrokerConfig(id=1)
