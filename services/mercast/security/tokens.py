"""The file of tokens: who may connect, and what for. Only hashes of tokens are in it.

tokens:
  feed:
    sha256: 5d41…
    publish: [stock.*]
    subscribe: ["*"]
    deny_subscribe: [payroll.*]
    publish_events_per_second: 1000

Tokens are made by us, of 256 random bits: from a plain SHA-256 nobody finds the way back. A slow hash (scrypt) would
protect only words that people choose, and hold up the broker whenever thousands of clients come back at once.
"""

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

import yaml

from mercast.content.errors import ContentError
from mercast.content.rules import Rules, check_pattern
from mercast.content.values import check_name
from mercast.security.errors import SecurityError

_RANDOM_BYTES = 32
_HASH = re.compile(r"[0-9a-f]{64}")
_LISTS = ("publish", "subscribe", "deny_publish", "deny_subscribe")
_RATES = ("publish_events_per_second", "publish_bytes_per_second")
_EMPTY = "tokens:\n"


class Token(NamedTuple):
    name: str
    hash: bytes
    publish: Rules
    subscribe: Rules
    publish_events_per_second: int = 0
    """By all clients that use it, together, at one broker; 0 is no limit."""
    publish_bytes_per_second: int = 0


class Tokens:
    def __init__(self, tokens: Iterable[Token] = ()) -> None:
        self._tokens = {token.hash: token for token in tokens}

    def __len__(self) -> int:
        return len(self._tokens)

    def find(self, hash: bytes) -> Token | None:
        """The token with this hash. The time that it takes could tell of hashes at most, and nobody finds the way back
        from those; to compare all would hold up the broker when thousands of clients are judged anew."""
        return self._tokens.get(hash)


def hash_of(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def new_token() -> str:
    """One that no command takes for a flag of its own."""
    while (token := secrets.token_urlsafe(_RANDOM_BYTES)).startswith("-"):
        pass
    return token


_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one in C, where it is there, is ten times as fast: there may be thousands of tokens."""


def read_tokens(text: str) -> Tokens:
    """SecurityError names what is wrong."""
    try:
        nodes, document = _loaded(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SecurityError(f"it is not YAML: {error}") from None
    if not isinstance(document, dict) or set(document) != {"tokens"}:
        raise SecurityError("expected one key, tokens, with a name for each token")
    listed = document["tokens"]
    if listed is None:
        return Tokens()
    if not isinstance(listed, dict):
        raise SecurityError(f"tokens holds a {type(listed).__name__}, expected a name for each token")
    _refuse_twice(nodes.value[0][1])
    tokens = [_token(name, fields) for name, fields in listed.items()]
    if len({token.hash for token in tokens}) < len(tokens):
        raise SecurityError("two tokens have the same hash: give each client a token of its own")
    return Tokens(tokens)


def _loaded(text: str) -> tuple[Any, Any]:
    """Of YAML, where everything stands, and what it says."""
    loader = _Loader(text)
    try:
        nodes = loader.get_single_node()
        return nodes, None if nodes is None else loader.construct_document(nodes)
    finally:
        loader.dispose()


def with_token(
    text: str, name: str, token: str, rules: Mapping[str, Sequence[str]], rates: Mapping[str, int] | None = None
) -> str:
    """The text of a file with one more token in it; SecurityError if it would not be right."""
    text = text if text.strip() else _EMPTY
    fields: dict[str, Any] = {"sha256": hash_of(token).hex()}
    fields |= {key: list(given) for key, given in rules.items() if given}
    fields |= {key: rate for key, rate in (rates or {}).items() if rate}
    _token(name, fields)
    entry = yaml.safe_dump({name: fields}, sort_keys=False, default_flow_style=None, allow_unicode=True, width=1000)
    more = text.rstrip("\n") + "\n" + "".join(f"  {line}\n" for line in entry.splitlines())
    if len(read_tokens(more)) != len(read_tokens(text)) + 1:
        raise SecurityError("the file is not laid out so that a token can be added at its end: write it by hand")
    return more


def _refuse_twice(nodes: Any) -> None:
    """YAML lets the last of two equal keys win in silence: here that is a mistake."""
    seen: set[str] = set()
    for key, _ in nodes.value:
        if key.value in seen:
            raise SecurityError(f"line {key.start_mark.line + 1}: token {key.value!r} is given twice")
        seen.add(key.value)


def _token(name: Any, fields: Any) -> Token:
    try:
        check_name(name, "token")
    except ContentError as error:
        raise SecurityError(str(error)) from None
    if not isinstance(fields, dict):
        raise SecurityError(f"token {name!r}: expected sha256 and what it may publish and subscribe to")
    known = ("sha256", *_LISTS, *_RATES)
    unknown = [key for key in fields if key not in known]
    if unknown:
        raise SecurityError(f"token {name!r}: {unknown[0]!r} is unknown, expected {', '.join(known)}")
    hash = fields.get("sha256")
    if not isinstance(hash, str) or not _HASH.fullmatch(hash):
        raise SecurityError(f"token {name!r}: sha256 is the hash of the token, in 64 hexadecimal digits, lower case")
    publish, subscribe, not_publish, not_subscribe = (_patterns(name, key, fields.get(key)) for key in _LISTS)
    rates = (_rate(name, key, fields.get(key)) for key in _RATES)
    return Token(name, bytes.fromhex(hash), Rules(publish, not_publish), Rules(subscribe, not_subscribe), *rates)


def _rate(name: str, key: str, given: Any) -> int:
    if given is None:
        return 0
    if type(given) is not int or given < 0:
        raise SecurityError(f"token {name!r}: {key} is {given!r}, expected a whole number, or 0 for no limit")
    return given


def _patterns(name: str, key: str, given: Any) -> tuple[str, ...]:
    if given is None:
        return ()
    if not isinstance(given, list):
        raise SecurityError(f"token {name!r}: {key} is a list of patterns, such as [stock.*]")
    try:
        return tuple(map(check_pattern, given))
    except ValueError as error:
        raise SecurityError(f"token {name!r}: {key}: {error}") from None
