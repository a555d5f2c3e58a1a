"""The file of tokens."""

import pytest

from mercast.content.rules import Rules
from mercast.security.errors import SecurityError
from mercast.security.tokens import hash_of, new_token, read_tokens, with_token

HASH = "0" * 64


def test_what_is_added_is_found():
    one, other = new_token(), new_token()
    text = with_token("", "feed", one, {"publish": ["stock.*"], "deny_publish": ["stock.x"], "subscribe": []})
    text = with_token(text + "# a comment stays\n", "desk: 'quoted'", other, {"subscribe": ["*"]})
    assert one not in text
    assert "# a comment stays" in text
    tokens = read_tokens(text)
    assert len(tokens) == 2
    feed, desk = tokens.find(hash_of(one)), tokens.find(hash_of(other))
    assert feed == ("feed", hash_of(one), Rules(("stock.*",), ("stock.x",)), Rules(), 0, 0)
    assert (desk.name, desk.subscribe) == ("desk: 'quoted'", Rules(("*",)))
    assert tokens.find(hash_of(one + " ")) is None


def test_no_token_is_like_another():
    tokens = {new_token() for _ in range(1_000)}
    assert len(tokens) == 1_000
    assert not any(token.startswith("-") for token in tokens), "commands would take it for a flag"
    assert hash_of("\ud800") != hash_of("?"), "whatever a client sends has a hash"


def test_a_file_without_tokens_lets_nobody_in():
    assert read_tokens("tokens:\n").find(hash_of("")) is None


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "expected one key, tokens"),
        ("[", "it is not YAML"),
        ("token: {}", "expected one key, tokens"),
        ("tokens: [a]", "tokens holds a list, expected a name for each token"),
        ("tokens: {a: 3}", "token 'a': expected sha256 and what it may publish"),
        ("tokens: {a: {}}", "token 'a': sha256 is the hash of the token"),
        (f"tokens: {{a: {{sha256: '{'A' * 64}'}}}}", "token 'a': sha256 is the hash of the token"),
        (f"tokens: {{1: {{sha256: '{HASH}'}}}}", "token 1 is not a name"),
        (
            f"tokens: {{a: {{sha256: '{HASH}', publsh: []}}}}",
            "token 'a': 'publsh' is unknown, expected sha256, publish",
        ),
        *(
            (
                f"tokens: {{a: {{sha256: '{HASH}', publish_bytes_per_second: {rate}}}}}",
                f"token 'a': .* is {rate}, expected a whole",
            )
            for rate in (-1, 1.5, True)
        ),
        (f"tokens: {{a: {{sha256: '{HASH}', publish: x}}}}", "token 'a': publish is a list of patterns"),
        (f"tokens: {{a: {{sha256: '{HASH}', publish: ['*x']}}}}", r"token 'a': publish: '\*x' is not a pattern"),
        (f"tokens:\n  a: {{sha256: '{HASH}'}}\n  a: {{sha256: '{HASH}'}}\n", "line 3: token 'a' is given twice"),
        (f"tokens: {{a: {{sha256: '{HASH}'}}, b: {{sha256: '{HASH}'}}}}", "two tokens have the same hash"),
    ],
)
def test_mistakes(text, told):
    with pytest.raises(SecurityError, match=told):
        read_tokens(text)


def test_a_name_is_not_taken_twice():
    text = with_token("", "a", "x", {})
    with pytest.raises(SecurityError, match="token 'a' is given twice"):
        with_token(text, "a", "y", {})


def test_where_nothing_can_be_added_at_the_end_that_is_said():
    with pytest.raises(SecurityError):
        with_token(f"tokens: {{a: {{sha256: '{HASH}'}}}}\n", "b", "y", {})
    with pytest.raises(SecurityError, match="'a\\*b' is not a pattern"):
        with_token("", "b", "y", {"publish": ["a*b"]})
