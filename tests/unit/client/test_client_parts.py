"""The small parts of the client: addresses, when to try which broker, what is imported."""

import socket
import ssl
import subprocess
import sys
from errno import ECONNREFUSED, ETIMEDOUT

import pytest

import mercast
from mercast.client.address import Address, addresses, parse
from mercast.client.arguments import patience
from mercast.client.brokers import Brokers, delay
from mercast.client.errors import MercastError
from mercast.client.options import options
from mercast.client.reasons import unreached


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("mercast://broker:7000", ("broker", 7000, False)),
        ("mercasts://broker", ("broker", 7470, True)),
        ("broker:7000", ("broker", 7000, False)),
        ("broker", ("broker", 7470, False)),
        ("mercast://broker:7000/", ("broker", 7000, False)),
        ("[::1]:7000", ("::1", 7000, False)),
        ("mercast://[::1]", ("::1", 7470, False)),
    ],
)
def test_addresses(url, address):
    assert parse(url) == address
    assert parse(str(parse(url)), address[2]) == address


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "http://broker",
            "broker:",
            "broker:x",
            "broker:0",
            "broker:70000",
            ":7470",
            "::1",
            "[::1]x",
            "a/b",
            "b:²",
        ),
        *("a..b:1", "x" * 64, "a\0b", "a\tb", "broker:" + "9" * 5000),
    ],
)
def test_what_is_no_address(url):
    with pytest.raises(MercastError, match=r"write mercast://host:port"):
        parse(url)


def test_where_addresses_come_from(monkeypatch):
    monkeypatch.delenv("MERCAST_URL", raising=False)
    assert addresses(None) == [Address("127.0.0.1", 7470)]
    monkeypatch.setenv("MERCAST_URL", "a, mercasts://b:1")
    assert addresses(None) == [Address("a", 7470), Address("b", 1, True)]
    assert addresses(["c", "d:2"]) == [Address("c", 7470), Address("d", 2)]
    with pytest.raises(MercastError, match="no address"):
        addresses([])


@pytest.mark.parametrize("urls", [5, [5], b"a:1", ["a", None]])
def test_addresses_are_text(urls):
    with pytest.raises(MercastError, match="the address of a broker is text, not"):
        addresses(urls)


def test_learned_brokers_are_tried_with_the_lost_one_last():
    a, b, c, d = (Address(host, 7470, True) for host in "abcd")
    brokers = Brokers([a])
    brokers.learn(a, ["b", "c", "what://is this"])
    assert brokers.at_first() == [a]
    for _ in range(20):
        assert set(brokers.again(b)[:-1]) == {a, c}
        assert brokers.again(b)[-1] == b
        assert brokers.again(a, ["d"])[0] == d


def test_delays_grow_and_differ():
    assert all(0 <= delay(0) <= 0.1 for _ in range(100))
    assert all(0.4 <= delay(3) <= 0.8 for _ in range(100))
    assert all(2.5 <= delay(attempt) <= 5 for attempt in range(6, 2000))
    assert len({delay(3) for _ in range(10)}) > 1


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), float("inf"), 10**400, "1", None, True])
def test_a_timeout_is_some_time(timeout):
    with pytest.raises(MercastError, match=r"a timeout of .*: give seconds, more than 0"):
        options(None, None, None, None, timeout)


@pytest.mark.parametrize("timeout", [float("nan"), float("inf"), "1", True])
def test_patience_is_some_time_or_without_end(timeout):
    with pytest.raises(MercastError, match=r"a timeout of .*: give seconds, .* or None to wait for ever"):
        patience(timeout)
    assert (patience(None), patience(0.5), patience(-1)) == (None, 0.5, 0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"token": 5}, "a token is text, not int"),
        ({"token": "\ud800"}, "a token: character 1 is half"),
        ({"name": b"shop"}, "the name of a client is text, not bytes"),
        ({"tls": "yes"}, "tls is True or an ssl.SSLContext, not str"),
    ],
)
def test_what_cannot_be_used_to_connect(given, says):
    with pytest.raises(MercastError, match=says):
        options(**({"url": "a", "token": None, "tls": None, "name": None, "timeout": 1} | given))


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (ConnectionRefusedError(ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"), "Connection refused"),
        (
            OSError(
                f"Multiple exceptions: [Errno {ECONNREFUSED}] Connect call failed ('::1', 1, 0, 0), "
                f"[Errno {ECONNREFUSED}] Connect call failed ('127.0.0.1', 1)"
            ),
            "Connection refused",
        ),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not known"),
        (ssl.SSLError(1, "[SSL] wrong version number"), "[SSL] wrong version number"),
        (ssl.SSLEOFError(8, "EOF occurred"), "the connection to a:1 was lost"),
        (ConnectionResetError(), "the connection to a:1 was lost"),
        (TimeoutError("timed out"), "no answer within 2 s"),
        (TimeoutError(ETIMEDOUT, "whatever"), "Connection timed out"),
    ],
)
def test_why_nobody_answers_is_said_in_the_words_of_the_system(error, says):
    assert unreached(Address("a", 1), error, 2.0) == says


def test_tls_is_used_where_it_is_asked_for():
    plain, secret = Address("a", 1), Address("a", 1, True)
    assert options("a", None, None, None, 1).tls_for(plain) is None
    assert options("a", None, None, None, 1).tls_for(secret) is not None
    assert options("a", None, True, None, 1).tls_for(plain) is not None


def test_all_errors_are_of_one_tree():
    names = [name for name in mercast.__all__ if isinstance(getattr(mercast, name), type)]
    errors = [getattr(mercast, name) for name in names if issubclass(getattr(mercast, name), Exception)]
    assert len(errors) >= 8
    assert all(issubclass(error, MercastError) for error in errors)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        mercast.nothing  # noqa: B018


def loaded(code):
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_client_is_light():
    alone = loaded("import mercast")
    assert {name for name in alone if name.startswith("mercast")} == {"mercast"}
    assert not {"asyncio", "orjson"} & alone
    client = loaded("import mercast\nmercast.connect, mercast.blocking.connect, mercast.MercastError")
    assert "mercast.client.aio" in client
    roots = {name.partition(".")[0] for name in client}
    assert not roots & {"numpy", "numba", "networkx", "scipy", "pydantic", "cyclopts", "rich", "aiohttp", "uvloop"}
    rooms = {name.split(".")[1] for name in client if name.startswith("mercast.")}
    assert rooms == {"blocking", "client", "content", "limits", "protocol", "wire"}
    assert "asyncio" not in loaded("import mercast.blocking")
