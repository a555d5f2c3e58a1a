"""All that the files of a broker say about security, read together: either all of it is right, or nothing changes."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from mercast.security import tls
from mercast.security.errors import SecurityError
from mercast.security.identity import against_peer
from mercast.security.tokens import Tokens, hash_of, read_tokens


class Files(NamedTuple):
    """By the names of their configuration keys."""

    tls_cert: Path | None = None
    tls_key: Path | None = None
    tls_client_ca: Path | None = None
    peer_cert: Path | None = None
    peer_key: Path | None = None
    peer_ca: Path | None = None
    tokens: Path | None = None
    admin_cert: Path | None = None
    admin_key: Path | None = None
    admin_token: Path | None = None


CERTIFICATES = ("tls_cert", "tls_client_ca", "peer_cert", "peer_ca", "admin_cert")


@dataclass(frozen=True)
class Security:
    clients: ssl.SSLContext | None = None
    called: ssl.SSLContext | None = None
    """For brokers that call this one."""
    calling: ssl.SSLContext | None = None
    """For this one, when it calls others."""
    tokens: Tokens | None = None
    """None if clients need none."""
    admin: bytes | None = None
    """The hash of the token for admin HTTP."""
    admins: ssl.SSLContext | None = None
    """For admin HTTP."""
    expiry: Mapping[str, float] = field(default_factory=dict)
    """When certificates end, in seconds since 1970, by configuration key."""


def in_file(token: str) -> bool:
    """Whether a token that is given names the file that holds it. No token that is given as it is has a slash."""
    return "/" in token


def read_security(files: Files, clusters: Sequence[str], admin_token: str = "") -> Security:
    """Of a broker in these clusters. SecurityError tells which key is wrong, and why. `admin_token` is one that is in
    no file."""
    expiry = {key: _expiry(key, file) for key in CERTIFICATES if (file := getattr(files, key)) is not None}
    clients = _shown("tls_cert", files.tls_cert, files.tls_key, files.tls_client_ca)
    admins = _shown("admin_cert", files.admin_cert, files.admin_key)
    called = calling = None
    if files.peer_cert and files.peer_key and files.peer_ca:
        for cluster in clusters:
            _check_identity(files.peer_cert, cluster)
        try:
            called, calling = tls.for_peers(files.peer_cert, files.peer_key, files.peer_ca)
        except (OSError, ValueError) as error:
            raise _unfit("peer_cert", files.peer_cert, files.peer_key, error) from None
    if files.admin_token is not None:
        admin_token = _read("admin_token", files.admin_token).decode(errors="replace").strip()
        if not admin_token:
            raise SecurityError(f"admin_token = '{files.admin_token}': the file is empty, expected a token")
    admin = hash_of(admin_token) if admin_token else None
    return Security(clients, called, calling, _tokens(files.tokens), admin, admins, expiry)


def _shown(key: str, cert: Path | None, key_file: Path | None, client_ca: Path | None = None) -> ssl.SSLContext | None:
    """To listen with this certificate."""
    if cert is None or key_file is None:
        return None
    try:
        return tls.for_clients(cert, key_file, client_ca)
    except (OSError, ValueError) as error:
        raise _unfit(key, cert, key_file, error) from None


def _read(key: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SecurityError(f"{key} = '{file}': {error.strerror}") from None


def _expiry(key: str, file: Path) -> float:
    from mercast.security.certificates import expiry  # brokers without TLS do without that library

    try:
        return expiry(_read(key, file))
    except SecurityError as error:
        raise SecurityError(_with_key(key, file, error)) from None


def _check_identity(file: Path, cluster: str) -> None:
    from mercast.security.certificates import identities_in

    try:
        why = against_peer(identities_in(_read("peer_cert", file)), cluster)
    except SecurityError as error:
        raise SecurityError(_with_key("peer_cert", file, error)) from None
    if why:
        raise SecurityError(f"peer_cert = '{file}': {why}")


def _tokens(file: Path | None) -> Tokens | None:
    if file is None:
        return None
    try:
        return read_tokens(_read("tokens", file).decode())
    except UnicodeDecodeError:
        raise SecurityError(f"tokens = '{file}': it is not text in UTF-8") from None
    except SecurityError as error:
        raise SecurityError(_with_key("tokens", file, error)) from None


def _with_key(key: str, file: Path, error: SecurityError) -> str:
    begin = f"{key} = '{file}': "
    return str(error) if str(error).startswith(begin) else begin + str(error)


def _unfit(key: str, cert: Path, key_file: Path, error: Exception) -> SecurityError:
    why = error.reason if isinstance(error, ssl.SSLError) and error.reason else str(error)
    return SecurityError(f"{key} = '{cert}' with the key '{key_file}': {why.replace('_', ' ').lower()}")
