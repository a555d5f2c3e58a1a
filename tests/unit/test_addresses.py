"""Addresses as people write them."""

import pytest

from mercast.broker.addresses import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:7470", Address("127.0.0.1", 7470)),
        ("broker-1.mercast.svc:0", Address("broker-1.mercast.svc", 0)),
        ("localhost", Address("localhost", 9)),
        ("[::1]:80", Address("::1", 80)),
        ("[fe80::1%eth0]", Address("fe80::1%eth0", 9)),
        ("h:65535", Address("h", 65535)),
    ],
)
def test_right_ones(text, address):
    assert parse_address(text, 9) == address
    assert parse_address(str(address)) == address


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "it names no host; write host:port, such as 127.0.0.1:9"),
        (":80", "it names no host"),
        ("7470", "'7470' is no host"),
        ("a b:1", "'a b' is no host"),
        ("-a:1", "'-a' is no host"),
        ("http://a:1", "it has a scheme"),
        ("a:b:1", "it has too many colons or brackets"),
        ("[::1", "it has too many colons or brackets"),
        ("[a]:1", "what is in brackets is no IPv6 address"),
        ("::1", "IPv6 goes in brackets; write host:port, such as [::1]:9"),
        ("a:", "the port is '', expected a number up to 65535"),
        ("a:65536", "the port is '65536', expected a number up to 65535"),
        ("a:-1", "the port is '-1'"),
        ("a:²", "the port is '²'"),
    ],
)
def test_wrong_ones_are_told_what_would_be_right(text, says):
    with pytest.raises(ValueError, match="is not an address: ") as raised:
        parse_address(text, 9)
    assert f"{text!r} is not an address: {says}" in str(raised.value)


def test_without_a_usual_port_one_must_be_named():
    with pytest.raises(ValueError, match=r"it names no port; write host:port, such as 127\.0\.0\.1:7470"):
        parse_address("localhost")


@pytest.mark.parametrize(("host", "everywhere"), [("0.0.0.0", True), ("::", True), ("::1", False), ("name", False)])
def test_addresses_that_lead_nowhere(host, everywhere):
    assert Address(host, 1).is_everywhere is everywhere
