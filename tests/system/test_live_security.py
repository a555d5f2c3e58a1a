"""Real brokers with certificates and tokens: who is let in, what may be done, and what changes while they run."""

import asyncio
import os
import signal
import socket
import ssl
from threading import Thread
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from live import Lone, Mesh, agree, mercast, metrics, until

from mercast.blocking import connect
from mercast.client.aio import connect as connect_async
from mercast.client.errors import NoBroker, Refused
from mercast.security.certificates import make_ca, make_certificate
from mercast.security.identity import Identity
from mercast.security.tokens import new_token, with_token
from mercast.wire.frames import Framing, Kind
from mercast.wire.hello import VERSIONS, hello, read_json

HERE = ["localhost", "127.0.0.1"]


@pytest.fixture(scope="module")
def certs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("certs")
    make_ca(folder)
    make_certificate(folder, "broker", Identity("default", "broker"), HERE)
    make_certificate(folder, "other", Identity("other", "broker"), HERE)
    make_certificate(folder, "client", Identity("default", "client"), [])
    make_ca(folder / "strange")
    make_certificate(folder / "strange", "broker", Identity("default", "broker"), HERE)
    return folder


def serving(folder):
    return ["--tls-cert", folder / "broker.pem", "--tls-key", folder / "broker.key"]


def peering(folder, name="broker"):
    return ["--peer-cert", folder / f"{name}.pem", "--peer-key", folder / f"{name}.key", "--peer-ca", folder / "ca.pem"]


def trusting(folder, name=None):
    context = ssl.create_default_context(cafile=folder / "ca.pem")
    if name:
        context.load_cert_chain(folder / f"{name}.pem", folder / f"{name}.key")
    return context


class TokensFile:
    """A file of tokens that is reached by a symlink, as Kubernetes lays secrets out."""

    def __init__(self, folder):
        self.file, self._folder, self._versions = folder / "tokens.yaml", folder, 0

    def holds(self, *tokens):
        """(name, token, rules) each; swapped in at once."""
        text = "tokens:\n"
        for name, token, rules in tokens:
            text = with_token(text, name, token, rules)
        self.write(text)

    def write(self, text):
        self._versions += 1
        version, link = self._folder / f"tokens.{self._versions}", self._folder / "link"
        version.write_text(text)
        link.symlink_to(version)
        link.replace(self.file)


@pytest.fixture
def tokens(tmp_path):
    return TokensFile(tmp_path)


def lone(tmp_path, *flags, id=1, **how):
    return Lone(tmp_path / f"broker-{id}.log", id, *flags, **how)


# -- TLS -------------------------------------------------------------------------------------------------------------


async def published_and_read(url, **how):
    async with await connect_async(url, **how) as client:
        events = await client.subscribe("quote")
        await client.publish("quote", {"price": 1})
        return (await anext(events)).attributes


BOTH = (connect, lambda *given, **named: asyncio.run(published_and_read(*given, **named)))
"""The two clients."""


def test_clients_by_tls(certs, tmp_path):
    with lone(tmp_path, *serving(certs)) as broker:
        url = f"mercasts://{broker.client}"
        assert asyncio.run(published_and_read(url, tls=trusting(certs))) == {"price": 1}
        with connect(url, tls=trusting(certs)) as client:
            events = client.subscribe("quote")
            client.publish("quote", {"price": 2}, bytes(1_000_000))
            assert len(events.get(timeout=60).payload) == 1_000_000
        assert 0 < metrics(broker)["mercast_certificate_expiry_seconds", "tls_cert"] < 366 * 86_400


def test_clients_go_on_by_tls_when_their_broker_stops(certs, tokens):
    tokens.holds(("one", token := new_token(), {"publish": ["*"], "subscribe": ["*"]}))
    flags = [*serving(certs), *peering(certs), "--tokens", tokens.file]
    how = {"tls": trusting(certs), "token": token}
    with Mesh(2, options=list(map(str, flags))) as mesh, connect(f"mercasts://{mesh[1].client}", **how) as client:
        events = client.subscribe("quote")
        mesh.terminate(1)
        until(lambda: client.broker == 2, "the client is at the other broker")
        client.publish("quote", {"price": 3})
        assert events.get(timeout=60).attributes == {"price": 3}


def test_a_broker_that_another_ca_vouches_for_is_not_trusted(certs, tmp_path):
    with lone(tmp_path, *serving(certs)) as broker:
        for connecting in BOTH:
            with pytest.raises(NoBroker, match="certificate verify failed"):
                connecting(f"mercasts://{broker.client}", tls=trusting(certs / "strange"), timeout=30)
        broker.says("no TLS", "unknown ca")
        assert metrics(broker)["mercast_connections_denied_total", "tls"] >= 2


def test_admin_http_by_tls(certs, tmp_path):
    serves = ["--admin-cert", certs / "broker.pem", "--admin-key", certs / "broker.key"]
    with lone(tmp_path, *serves, "--admin-token", "secret") as broker:

        def overlay(scheme, ca):
            told = ["--admin", f"{scheme}://{broker.admin}", "--admin-token", "secret"]
            return mercast("overlay", *told, env=os.environ | {"MERCAST_CA": str(ca / "ca.pem")})

        assert "broker 1 of cluster default" in overlay("https", certs).stdout
        assert "no TLS with the admin port" in overlay("https", certs / "strange").stderr
        assert "write https://" in overlay("http", certs).stderr
        broker.says("no TLS", "does not speak TLS")
        asked = Request(f"https://{broker.admin}/metrics", headers={"Authorization": "Bearer secret"})
        with urlopen(asked, context=trusting(certs)) as answer:
            assert 'mercast_certificate_expiry_seconds{certificate="admin_cert"}' in answer.read().decode()


def test_without_tls_nobody_gets_in_where_it_is_asked_for(certs, tmp_path):
    with lone(tmp_path, *serving(certs)) as broker:
        for connecting in BOTH:
            with pytest.raises(NoBroker, match="perhaps it speaks TLS only"):
                connecting(broker.client, timeout=30)
        broker.says("no TLS", "does not speak TLS")


def test_clients_need_certificates_if_there_is_a_ca_for_them(certs, tmp_path):
    with lone(tmp_path, *serving(certs), "--tls-client-ca", certs / "ca.pem") as broker:
        url = f"mercasts://{broker.client}"
        assert asyncio.run(published_and_read(url, tls=trusting(certs, "client"))) == {"price": 1}
        strange = ssl.create_default_context(cafile=certs / "ca.pem")
        strange.load_cert_chain(certs / "strange" / "broker.pem", certs / "strange" / "broker.key")
        for context, why in (
            (trusting(certs), "did not return a certificate"),
            (strange, "the certificate of the other side is not accepted"),
        ):
            for connecting in BOTH:
                with pytest.raises(NoBroker, match="certificate"):
                    connecting(url, tls=context, timeout=30)
            broker.says("no TLS", why)


def test_brokers_prove_themselves_to_each_other(certs):
    with Mesh(3, options=list(map(str, peering(certs)))) as mesh:
        with connect(mesh[1].client) as one, connect(mesh[3].client) as other:
            events = one.subscribe("quote")
            assert other.publish("quote", {"price": 1}, bytes(1_000_000)).destinations == 1
            assert events.get(timeout=60).attributes == {"price": 1}
        mesh.kill(2)
        mesh.start(2)
        mesh.wait_ready(2)
        agree(mesh.brokers.values())


def test_a_broker_of_another_cluster_is_refused_by_its_certificate(certs, tmp_path):
    other = ["--cluster", "other", *peering(certs, "other")]
    with lone(tmp_path, *peering(certs)) as one, lone(tmp_path, *other, "--seeds", one.peer, id=2) as stranger:
        one.says("certificate", "mercast://cluster/other/broker", "expected mercast://cluster/default/broker")
        stranger.says("refused", "certificate", "mercast://cluster/default/broker")


def test_a_broker_of_another_ca_is_refused(certs, tmp_path):
    with (
        lone(tmp_path, *peering(certs)) as one,
        lone(tmp_path, *peering(certs / "strange"), "--seeds", one.peer, id=2) as stranger,
    ):
        stranger.says("refused", "certificate: the certificate of the other side is not accepted")
        one.says("no TLS", "perhaps it does not accept the certificate")


def test_a_broker_whose_certificate_is_not_accepted_hears_of_it(certs, tmp_path):
    """It trusts the other side, but not the other way round: TLS tells it only after its own handshake."""
    strange = certs / "strange"
    flags = ["--peer-cert", strange / "broker.pem", "--peer-key", strange / "broker.key", "--peer-ca", certs / "ca.pem"]
    with lone(tmp_path, *peering(certs)) as one, lone(tmp_path, *flags, "--seeds", one.peer, id=2) as stranger:
        one.says("no TLS", "the certificate of the other side is not accepted")
        stranger.says("refused", "certificate", "perhaps it does not accept the certificate that it was shown")
        until(lambda: metrics(one)["mercast_connections_denied_total", "tls"] > 3, "it tries again and again")
        assert one.told().count("no TLS") == 1
        assert stranger.told().count('"refused"') == 1


def test_a_client_is_no_broker(certs, tmp_path):
    with lone(tmp_path, *peering(certs)) as broker:
        context = trusting(certs, "client")
        host, port = broker.peer.split(":")
        with context.wrap_socket(socket.create_connection((host, int(port)), 30), server_hostname=host) as connection:
            framing, frames = Framing(), []
            while not frames:
                frames = framing.feed(connection.recv(65536))
        [(kind, body)] = frames
        assert (kind, read_json(body)["code"]) == (Kind.ERROR, "certificate")
        assert "the certificate names mercast://cluster/default/client, expected" in read_json(body)["reason"]
        broker.says("certificate", "cluster/default/client")


def test_a_broker_does_not_start_with_a_certificate_that_others_will_refuse(certs):
    done = mercast("broker", "--id", 1, "--check-config", *peering(certs, "client"))
    assert done.returncode == 1
    assert "the certificate names mercast://cluster/default/client, expected mercast://cluster/default/broker" in (
        done.stderr
    )


# -- tokens ----------------------------------------------------------------------------------------------------------


def test_tokens_and_their_rules(tokens, tmp_path):
    token = new_token()
    rules = {"publish": ["stock.*"], "deny_publish": ["stock.secret"], "subscribe": ["stock.*"]}
    tokens.holds(("feed", token, rules))
    with lone(tmp_path, "--tokens", tokens.file) as broker:
        for wrong in (None, "x"):
            with pytest.raises(Refused) as refused:
                connect(broker.client, token=wrong, timeout=30)
            assert refused.value.code == "token"
            says = "a token is needed here" if wrong is None else "this broker does not know the token"
            assert says in str(refused.value)
            broker.says("client cut off", '"token"', says)
        assert said_first(broker, hello(mercast=VERSIONS, token=None))["code"] == "token"
        assert said_first(broker, hello(mercast=VERSIONS, token=3))["code"] == "protocol"
        with connect(broker.client, token=token) as client:
            events = client.subscribe("stock.quote")
            client.publish("stock.quote", {"price": 1})
            assert events.get(timeout=60).attributes == {"price": 1}
            with pytest.raises(Refused, match=r"token 'feed' may not publish stock\.secret: denied by 'stock\.secret'"):
                client.publish("stock.secret")
            with pytest.raises(Refused, match=r"token 'feed' may not publish bond: allowed is only stock\.\*"):
                client.advertise("bond")
            for type in ("bond", None):
                with pytest.raises(Refused, match="token 'feed' may not subscribe to"):
                    client.subscribe(type)
            with pytest.raises(Refused, match="token 'feed' may not declare bond"):
                client.declare("bond", {}, parent="stock.quote")
            client.publish("stock.quote", {"price": 2})
            assert events.get(timeout=60).attributes == {"price": 2}
        told = broker.told()
        assert told.count("denied, and not logged again") == 1
        assert token not in told
        counted = metrics(broker)
        assert counted["mercast_requests_denied_total", "declare"] == 1
        assert counted["mercast_requests_denied_total", "subscribe"] == 2


def said_first(broker, words):
    """What a broker says to a client that begins so."""
    host, port = broker.client.split(":")
    with socket.create_connection((host, int(port)), 30) as connection:
        connection.sendall(words)
        framing, frames = Framing(), []
        while not frames:
            frames = framing.feed(connection.recv(65536))
    return read_json(frames[0][1])


def test_a_token_that_is_gone_is_cut_off_and_others_stay(tokens, tmp_path):
    staying, going = new_token(), new_token()
    every = {"publish": ["*"], "subscribe": ["*"]}
    tokens.holds(("staying", staying, every), ("going", going, every))
    with (
        lone(tmp_path, "--tokens", tokens.file) as broker,
        connect(broker.client, token=staying) as stays,
        connect(broker.client, token=going) as goes,
    ):
        before, events = stays.id, stays.subscribe("quote")
        goes.publish("quote")
        tokens.holds(("staying", staying, every))
        broker.says("client cut off", '"token"')
        with pytest.raises(Refused, match="does not know the token"):
            connect(broker.client, token=going, timeout=30)
        stays.publish("quote")
        assert len([events.get(timeout=60) for _ in range(2)]) == 2
        assert stays.id == before


def test_a_subscription_that_is_no_longer_allowed_ends(tokens, tmp_path):
    token = new_token()
    tokens.holds(("one", token, {"publish": ["*"], "subscribe": ["*"]}))
    with lone(tmp_path, "--tokens", tokens.file) as broker, connect(broker.client, token=token) as client:
        events = client.subscribe("quote")
        tokens.holds(("one", token, {"publish": ["*"], "subscribe": ["*"], "deny_subscribe": ["quote"]}))
        with pytest.raises(Refused, match="may not subscribe to quote: denied by 'quote'"):
            events.get(timeout=60)


def test_a_subtype_that_is_denied_is_not_had_by_its_parent(tokens, tmp_path):
    reader, owner = new_token(), new_token()
    tokens.holds(
        ("reader", reader, {"subscribe": ["*"], "deny_subscribe": ["secret.*"]}), ("owner", owner, {"publish": ["*"]})
    )
    with (
        lone(tmp_path, "--tokens", tokens.file) as broker,
        connect(broker.client, token=reader) as reads,
        connect(broker.client, token=owner) as owns,
    ):
        events = reads.subscribe("quote")
        owns.declare("secret.quote", {}, parent="quote")
        with pytest.raises(Refused, match=r"it would bring its subtype secret\.quote"):
            events.get(timeout=60)


# -- reload ----------------------------------------------------------------------------------------------------------


def test_nothing_is_lost_while_everything_is_read_again(certs, tokens, tmp_path):
    """Certificates by a symlink that leads elsewhere, tokens by SIGHUP, while events flow over both."""
    token, later = new_token(), new_token()
    every = {"publish": ["*"], "subscribe": ["*"]}
    tokens.holds(("one", token, every))
    current = tmp_path / "current"
    current.symlink_to(certs)
    flags = [*peering(current), *serving(current), "--tokens", tokens.file]
    with Mesh(2, options=list(map(str, flags)), folder=tmp_path) as mesh:
        how = {"token": token, "tls": trusting(certs)}
        with (
            connect(f"mercasts://{mesh[1].client}", **how) as one,
            connect(f"mercasts://{mesh[2].client}", **how) as two,
        ):
            ids, events = (one.id, two.id), two.subscribe("quote")
            published, stop = [], []

            def publish():
                while not stop:
                    one.publish("quote", {"number": len(published)})
                    published.append(None)

            thread = Thread(target=publish)
            thread.start()
            try:
                new = tmp_path / "new"
                new.mkdir()
                for file in certs.iterdir():
                    if file.is_file():
                        (new / file.name).write_bytes(file.read_bytes())
                make_certificate(new, "broker", Identity("default", "broker"), HERE, days=7)
                (tmp_path / "swapped").symlink_to(new)
                (tmp_path / "swapped").replace(current)
                for broker in mesh.brokers.values():
                    until(lambda b=broker: expiry(b, "peer_cert") < 8 * 86_400, "the new certificate counts")
                    assert expiry(broker, "tls_cert") < 8 * 86_400
                tokens.holds(("one", token, every), ("later", later, every))
                for broker in mesh.brokers.values():
                    os.kill(broker.pid, signal.SIGHUP)
                    until(lambda b=broker: metrics(b)["mercast_reloads_total", "done"] >= 2, "tokens are read again")
                with connect(f"mercasts://{mesh[1].client}", token=later, tls=trusting(certs)) as client:
                    client.publish("other")
            finally:
                stop.append(True)
                thread.join()
            assert len(published) > 100
            assert [events.get(timeout=60).attributes["number"] for _ in published] == list(range(len(published)))
            assert (one.id, two.id) == ids
        assert all("link lost" not in broker.log.read_text() for broker in mesh.brokers.values())


def expiry(broker, which):
    return metrics(broker)["mercast_certificate_expiry_seconds", which]


def test_what_is_broken_changes_nothing(tokens, tmp_path):
    token = new_token()
    tokens.holds(("one", token, {"publish": ["*"]}))
    with lone(tmp_path, "--tokens", tokens.file) as broker, connect(broker.client, token=token) as client:
        tokens.write("tokens: [not, names]")
        broker.says("not read again: all stays as it was", "tokens holds a list", '"error"')
        assert metrics(broker)["mercast_reloads_total", "failed"] == 1
        client.publish("quote")
        connect(broker.client, token=token).close()


def test_what_cannot_change_at_run_time_is_refused_by_name(tokens, tmp_path):
    first, second = new_token(), new_token()
    tokens.holds(("one", first, {"publish": ["*"]}))
    elsewhere = TokensFile(tmp_path / "elsewhere")
    elsewhere.file.parent.mkdir()
    elsewhere.holds(("two", second, {"publish": ["*"]}))
    config = tmp_path / "broker.yaml"
    config.write_text(f"tokens: {tokens.file}\ndegree: 6\n")
    with lone(tmp_path, "--config", config) as broker:
        config.write_text(f"tokens: {elsewhere.file}\ndegree: 8\n")
        broker.process.send_signal(signal.SIGHUP)
        broker.says("degree cannot change at run time", '"warning"')
        broker.says("read again")
        connect(broker.client, token=second).close()
        with pytest.raises(Refused):
            connect(broker.client, token=first, timeout=30)
        config.write_text("degree: many\n")
        broker.process.send_signal(signal.SIGHUP)
        broker.says("not read again", "degree = 'many'")


def test_protection_stays_where_the_address_cannot_change(tokens, tmp_path):
    tokens.holds(("one", token := new_token(), {"publish": ["*"]}))
    config = tmp_path / "broker.yaml"
    config.write_text(f"tokens: {tokens.file}\nlisten: 0.0.0.0:0\nadvertise: 127.0.0.1:1\n")
    broker = lone(tmp_path, "--config", config)
    at = broker.flags.index("--listen")
    del broker.flags[at : at + 2]
    with broker:
        broker.says("tokens travel without TLS", '"warning"')
        config.write_text("listen: 127.0.0.1:0\n")
        broker.process.send_signal(signal.SIGHUP)
        broker.says("listen cannot change at run time")
        broker.says("not read again", "listen: 0.0.0.0:0 can be reached by others")
    assert token not in broker.told()


# -- where brokers listen ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["listen", "peer-listen", "admin-listen"])
def test_without_protection_only_this_machine_is_served(key):
    flags = ("--id", 1, f"--{key}", "0.0.0.0:0", "--advertise", "127.0.0.1:1", "--peer-advertise", "127.0.0.1:2")
    for more in ((), ("--check-config",)):
        done = mercast("broker", *flags, *more)
        assert done.returncode == 1
        assert f"{key.replace('-', '_')} (--{key}): 0.0.0.0:0 can be reached by others, and" in done.stderr
    assert mercast("broker", *flags, "--check-config", "--insecure").returncode == 0


def test_the_log_says_why_only_this_machine_is_served_or_that_it_is_not(tmp_path):
    with lone(tmp_path) as broker:
        broker.says("listen is for this machine only", "neither token nor TLS")
    broker = Lone(tmp_path / "open.log", 2, "--insecure")
    broker.flags[broker.flags.index("--admin-listen") + 1] = "0.0.0.0:0"
    with broker:
        broker.says("insecure: admin_listen can be reached by others", '"warning"')


def test_admin_asks_for_its_token(tmp_path):
    secret = tmp_path / "admin"
    secret.write_text("from a file\n")
    with lone(tmp_path, "--admin-token", secret) as broker:
        assert urlopen(f"http://{broker.admin}/livez").status == 200
        for token in (None, "wrong"):
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            with pytest.raises(HTTPError) as error:
                urlopen(Request(f"http://{broker.admin}/metrics", headers=headers))
            assert error.value.code == 401
            error.value.close()
        right = {"Authorization": "Bearer from a file"}
        assert urlopen(Request(f"http://{broker.admin}/metrics", headers=right)).status == 200
        assert "asks for a token" in mercast("overlay", "--admin", broker.admin).stderr
        done = mercast("overlay", "--admin", broker.admin, "--admin-token", secret)
        assert done.stdout.startswith("broker 1 of cluster default")
