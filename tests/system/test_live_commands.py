"""The command line against live brokers: what it says and how it ends."""

import json
import os
import re
import resource
import signal
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from live import PATIENCE, Lone, Mesh, Running, ask, end, free_port_for_local, is_free, local_ports, mercast, until

from mercast import Refused, blocking
from mercast.broker.local import Local, NotReady
from mercast.processes import end_with_parent, free_addresses
from mercast.protocol.rows import Copied, Delivered, Published

QUOTE = ["stock.quote", "symbol=ACME", "price=99"]


@pytest.fixture(scope="module")
def mesh():
    with Mesh(2) as brokers:
        yield brokers


def told(done):
    return done.returncode, done.stdout, done.stderr


def subscribed(mesh, id, folder, *arguments):
    """`mercast sub`, once it is settled."""
    return Running(folder, "sub", *arguments, "--url", mesh[id].client)


# -- mercast pub, sub ------------------------------------------------------------------------------------------------


def test_pub_without_subscribers(mesh):
    done = mercast("pub", *QUOTE, "--url", mesh[1].client)
    assert told(done) == (0, "accepted, 0 destinations: nobody subscribes to stock.quote\n", "")


@pytest.mark.parametrize("id", [1, 2], ids=["at the same broker", "at another broker"])
def test_pub_and_sub(mesh, tmp_path, id):
    with subscribed(mesh, 1, tmp_path, "stock.quote", "price < 100", "--count", 2) as sub:
        sub.says("the subscription to stock.quote where price < 100 is settled")
        for price in (99, 101, 98.5):
            done = mercast(
                "pub", "stock.quote", "symbol=ACME Inc", f"price={price}", "--payload", "hi", "--url", mesh[id].client
            )
            found = "0 destinations: nobody subscribes to stock.quote" if price > 100 else "1 destination"
            assert told(done) == (0, f"accepted, {found}\n", "")
        assert sub.process.wait(PATIENCE) == 0
        lines = ["stock.quote symbol='ACME Inc' price=99 | hi", "stock.quote symbol='ACME Inc' price=98.5 | hi"]
        assert sub.out.splitlines() == lines


def test_two_destinations_and_json(mesh, tmp_path):
    with subscribed(mesh, 1, tmp_path, "--json") as one, subscribed(mesh, 2, tmp_path, "--json", "--count", 1) as two:
        for sub in (one, two):
            sub.says("the subscription to any type is settled")
        done = mercast("pub", *QUOTE, env=os.environ | {"MERCAST_URL": mesh[1].client})
        assert told(done) == (0, "accepted, 2 destinations\n", "")
        assert two.process.wait(PATIENCE) == 0
        said = json.loads(two.out)
        assert (said["type"], said["attributes"]) == ("stock.quote", {"symbol": "ACME", "price": 99})
        one.says("ACME")
        assert end(one.process, signal.SIGINT) == 0
        assert json.loads(one.out)["id"] == said["id"]


def test_pub_of_many_lines(mesh):
    lines = '{"type": "a", "attributes": {"n": 1}}\n{"attributes": {}}\n'
    done = mercast("pub", "--file", "-", "--url", mesh[1].client, input=lines)
    assert done.returncode == 1
    assert done.stdout == "1 accepted, 0 destinations in all, 1 refused\n"
    assert done.stderr == "line 2: no type: write it into the line, or before --file for all of them\n"


def test_what_the_broker_refuses(mesh):
    done = mercast("sub", "stock.quote", "price <", "--url", mesh[1].client)
    assert (done.returncode, done.stdout) == (1, "")
    assert "mercast sub: line 1, column 8: found the end of the filter, expected a value" in done.stderr


@pytest.mark.parametrize(
    "command", [["pub", *QUOTE], ["sub", "stock.quote"], ["trace", *QUOTE]], ids=lambda words: words[0]
)
def test_no_broker_there(command):
    (nobody,) = free_addresses(1)
    done = mercast(*command, "--url", nobody)
    assert told(done) == (1, "", f"no broker answers at {nobody}; start one with: mercast local 3\n")


# -- mercast trace, overlay ------------------------------------------------------------------------------------------


def test_trace_shows_every_hop(mesh, tmp_path):
    with subscribed(mesh, 2, tmp_path, "stock.quote") as sub:
        sub.says("is settled")
        done = mercast("trace", *QUOTE, "--wait", 3, "--url", mesh[1].client)
        assert (done.returncode, done.stderr) == (0, "")
        said = [line[:60].rstrip() for line in done.stdout.splitlines()]
        assert said[0] == "accepted, 1 destination"
        assert said[1] == "broker 1: published, 1 other broker, 0 clients here"
        assert sorted(said[2:])[1] == "  broker 2: delivered to " + sorted(said[2:])[1].rpartition(" ")[2]
        assert sorted(said[2:])[0] == "  broker 2: 1 hop, from broker 1"
        rows = [
            json.loads(line)
            for line in mercast("trace", *QUOTE, "--json", "--wait", 3, "--url", mesh[1].client).stdout.splitlines()
        ]
        assert sorted((row["broker"], row["kind"]) for row in rows) == [
            (1, "published"),
            (2, "delivered"),
            (2, "received"),
        ]
        for row, fields in zip(sorted(rows, key=lambda row: row["kind"]), (Delivered, Published, Copied), strict=True):
            assert set(fields._fields) <= row.keys()


def test_a_receipt_counts_the_publishers_broker_and_the_trace_says_so(mesh, tmp_path):
    with subscribed(mesh, 1, tmp_path, "stock.quote") as here, subscribed(mesh, 2, tmp_path, "stock.quote") as there:
        for sub in (here, there):
            sub.says("is settled")
        done = mercast("trace", *QUOTE, "--wait", 3, "--url", mesh[1].client)
        said = [line[:60].rstrip() for line in done.stdout.splitlines()]
        assert said[0] == "accepted, 2 destinations"
        assert "broker 1: published, 1 other broker, 1 client here" in said


def test_overlay(mesh):
    done = mercast("overlay", "--json", "--admin", mesh[1].admin)
    assert (done.returncode, done.stderr) == (0, "")
    said = json.loads(done.stdout)
    assert said.keys() == {"overlay", "tables"}
    assert said["overlay"]["overlay"]["links"] == [{"between": [1, 2], "cost": 1, "state": "up"}]
    assert said["tables"]["counts"].keys() == {"clients", "advertisements", "subscriptions", "types"}
    shown = mercast("overlay", "--admin", mesh[1].admin).stdout
    assert shown.startswith("broker 1 of cluster default: ddbr, version ")
    assert "1 – 2" in shown


def test_overlay_of_nobody():
    (nobody,) = free_addresses(1)
    said = f"no broker answers at {nobody}; is its admin port open? (mercast broker --admin-listen …)\n"
    assert told(mercast("overlay", "--admin", nobody)) == (1, "", said)


def test_overlay_of_another_port(mesh):
    said = (
        f"what answers at {mesh[1].client} is not the admin port of a broker (mercast broker --admin-listen …); "
        "or it wants TLS: write https://…\n"
    )
    assert told(mercast("overlay", "--admin", mesh[1].client)) == (1, "", said)


# -- mercast broker --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("flag", ["--listen", "--peer-listen", "--admin-listen"])
def test_a_port_that_is_in_use(flag):
    free = dict(zip(["--listen", "--peer-listen", "--admin-listen"], free_addresses(3), strict=True))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        flags = [word for pair in (free | {flag: f"127.0.0.1:{port}"}).items() for word in pair]
        done = mercast("broker", "--id", 1, *flags)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.endswith(f"mercast: port {port} is in use; choose another with {flag}\n")


def test_a_configuration_that_is_wrong(tmp_path):
    file = tmp_path / "broker.yaml"
    file.write_text("id: 1\ndegree: 3\ncolour: blue\n")
    environment = os.environ | {"MERCAST_HEART_BEAT": "often"}
    done = mercast("broker", "--config", file, "--strategy", "magic", env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    said = done.stderr.splitlines()
    assert said[0] == "mercast: the configuration is not right:"
    for key in ("degree", "colour", "heart_beat", "strategy"):
        assert any(key in line for line in said[1:]), done.stderr


def test_check_config(tmp_path):
    file = tmp_path / "broker.yaml"
    file.write_text("id: 1\nmembers: [1=127.0.0.1:7471, 2=127.0.0.1:7571]\n")
    assert told(mercast("broker", "--config", file, "--check-config")) == (0, "the configuration is right\n", "")
    done = mercast("broker", "--config", file, "--check-config", "--degree", 5)
    assert (done.returncode, done.stdout) == (1, "")
    assert "degree" in done.stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_broker_ends_well(tmp_path, number):
    with Lone(tmp_path / "log", 1) as broker:
        until(broker.is_ready, "ready")
        assert end(broker.process, number) == 0
        assert '"message": "stopped"' in broker.told()
        assert "Traceback" not in broker.told()


def test_clients_that_there_are_no_file_descriptors_for_are_told_so(tmp_path):
    def limited():
        end_with_parent()
        resource.setrlimit(resource.RLIMIT_NOFILE, (100, 258))

    with Lone(tmp_path / "log", 1, preexec_fn=limited) as broker, ExitStack() as held:
        broker.says("max_clients is lowered", '"given": 15000', '"to": 2')
        for _ in range(2):
            held.enter_context(blocking.connect(broker.client))
        with pytest.raises(Refused, match="this broker has 2 clients, and takes no more"):
            blocking.connect(broker.client)


# -- mercast local ---------------------------------------------------------------------------------------------------


def started(folder, brokers, *flags):
    first = free_port_for_local(brokers)
    return Running(folder, "local", brokers, "--port", first, *flags), first


def test_local_until_ctrl_c(tmp_path):
    command, first = started(tmp_path, 2, "--strategy", "fbr", "--degree", "2")
    with command:
        command.says("Ctrl-C here stops all")
        assert command.out.splitlines()[:2] == [
            f"broker 1: clients at 127.0.0.1:{first}, admin at http://127.0.0.1:{first + 2}",
            f"broker 2: clients at 127.0.0.1:{first + 30}, admin at http://127.0.0.1:{first + 32}",
        ]
        assert f"mercast sub stock.quote 'price < 100' --url 127.0.0.1:{first}" in command.out
        mine = mercast("overlay", "--json", "--admin", f"127.0.0.1:{first + 2}")
        assert json.loads(mine.stdout)["overlay"]["broker"]["strategy"] == "fbr"
        os.killpg(command.process.pid, signal.SIGINT)  # as a terminal does
        assert command.process.wait(PATIENCE) == 0
        assert command.out.endswith("stopped\n")
        assert command.err == "starting 2 brokers …\n"
    assert all(map(is_free, local_ports(first, 2)))


@pytest.mark.slow
def test_local_in_the_background_of_a_script_ends_by_sigterm(tmp_path):
    def deaf():
        end_with_parent()
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    first = free_port_for_local(1)
    with Running(tmp_path, "local", 1, "--port", first, preexec_fn=deaf) as command:
        command.says("Ctrl-C here stops all")
        command.process.terminate()
        assert command.process.wait(PATIENCE) == 0
        assert command.out.endswith("stopped\n")
    assert all(map(is_free, local_ports(first, 1)))


@pytest.mark.slow
def test_local_tells_of_a_broker_that_was_killed(tmp_path):
    command, first = started(tmp_path, 2)
    with command:
        command.says("Ctrl-C here stops all")
        one, two = brokers_of(command.process.pid)
        os.kill(two, signal.SIGKILL)
        command.says("broker 2 has ended (SIGKILL); the others go on")
        os.kill(one, signal.SIGKILL)
        assert command.process.wait(PATIENCE) == 1
        assert command.err.splitlines()[1].startswith("mercast: broker 1, the last one, has ended (SIGKILL)")
    until(lambda: all(map(is_free, local_ports(first, 2))), "all have ended")


def brokers_of(pid):
    """The brokers that `mercast local` has started, in order."""
    (nursery,) = children_of(pid)
    return children_of(nursery)


def children_of(pid):
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


def test_local_says_what_is_wrong(tmp_path):
    done = mercast("local", 0)
    assert told(done) == (1, "", "mercast: there must be at least one broker: mercast local 3\n")
    done = mercast("local", 2, "--strategy", "magic")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no strategy 'magic'; there are ddbr, merc, fbr, flooding, unicast, static-hash" in done.stderr
    first = free_port_for_local(1)
    with socket.create_server(("127.0.0.1", first)):
        done = mercast("local", 1, "--port", first)
    assert told(done) == (
        1,
        "",
        f"mercast: port {first} is in use; choose another with --port, or 0 for any free ports\n",
    )
    for port, brokers, most in ((65_530, 3, 65_493), (-1, 1, 65_533)):
        said = f"mercast: --port {port}: choose 1 to {most} for {brokers} brokers, or 0 for any free ports\n"
        assert told(mercast("local", brokers, "--port", port)) == (1, "", said)


@pytest.mark.slow
def test_local_beside_another_one(tmp_path):
    command, first = started(tmp_path, 2)
    with command:
        command.says("Ctrl-C here stops all")
        done = mercast("local", 3, "--port", first)
        said = f"mercast: port {first} is in use; choose another with --port, or 0 for any free ports\n"
        assert told(done) == (1, "", said)


@pytest.mark.slow
def test_local_at_any_free_ports(tmp_path):
    with Running(tmp_path, "local", 1, "--port", 0) as command:
        command.says("Ctrl-C here stops all")
        (address,) = re.findall(r"^broker 1: clients at (127.0.0.1:[1-9]\d+), ", command.out)
        assert f"mercast sub stock.quote 'price < 100' --url {address}" in command.out
        done = mercast("pub", *QUOTE, "--url", address)
        assert told(done) == (0, "accepted, 0 destinations: nobody subscribes to stock.quote\n", "")


def test_the_answer_of_another_process_is_not_taken_for_a_brokers_own(mesh):
    """Only the admin port of the other is asked here."""
    (client, peer), admin = free_addresses(2), mesh[1].admin
    with (
        pytest.raises(NotReady, match=r"broker 1 has ended(.|\n)*port \d+ is in use; choose another with --admin"),
        Local(1, matcher="scan", addresses=lambda _: (client, peer, admin)),
    ):
        pass


def test_a_broker_without_clients_or_peers_answers_its_admin(tmp_path):
    with Lone(tmp_path / "log", 7) as broker:
        until(broker.is_ready, "ready")
        assert ask(broker, "overlay")["broker"]["id"] == 7


def test_messages_are_said_as_they_are():
    """In one line, with brackets."""
    done = mercast("broker", "--id", 1, "--listen", "::1", "--check-config")
    assert (done.returncode, done.stdout) == (1, "")
    assert "'::1' is not an address: IPv6 goes in brackets; write host:port, such as [::1]:7470\n" in done.stderr
