"""Makes certificates for a first secure set-up, and reads how long some last. Needs the `cryptography` library."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from mercast.security.errors import SecurityError
from mercast.security.files import replace_file
from mercast.security.identity import PEERS, Identity, from_uris

CA = "ca"
CA_DAYS = 3650
DAYS = 365

_AHEAD = timedelta(minutes=5)
"""Certificates are good from a little earlier on: clocks differ."""


def make_ca(folder: Path, days: int = CA_DAYS) -> None:
    """ca.pem and ca.key, if they are not there yet."""
    if (folder / f"{CA}.pem").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _named("mercast CA")
    usage = x509.KeyUsage(False, False, False, False, False, key_cert_sign=True, crl_sign=True,
                          encipher_only=False, decipher_only=False)  # fmt: skip
    certificate = (
        _begun(name, name, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .sign(key, hashes.SHA256())
    )
    _write(folder, CA, key, certificate)


def make_certificate(
    folder: Path, name: str, identity: Identity, hosts: Sequence[str], days: int = DAYS, joins: Sequence[str] = ()
) -> None:
    """<name>.pem and <name>.key, signed by the CA of the folder. Those of brokers name the hosts they are found at;
    those of edges also the other clusters that they join."""
    try:
        authority = x509.load_pem_x509_certificate((folder / f"{CA}.pem").read_bytes())
        signing = serialization.load_pem_private_key((folder / f"{CA}.key").read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise SecurityError(f"the CA in {folder} cannot be read: {error}") from None
    if not isinstance(signing, ec.EllipticCurvePrivateKey):
        raise SecurityError(f"the CA in {folder} was not made by mercast cert: sign certificates with your own tools")
    key = ec.generate_private_key(ec.SECP256R1())
    identities = (identity, *(identity._replace(cluster=cluster) for cluster in joins))
    names = [*(x509.UniformResourceIdentifier(str(one)) for one in identities), *map(_host, hosts)]
    server = [ExtendedKeyUsageOID.SERVER_AUTH] if identity.role in PEERS else []
    certificate = (
        _begun(_named(name), authority.subject, key.public_key(), days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(x509.ExtendedKeyUsage([*server, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        .sign(signing, hashes.SHA256())
    )
    _write(folder, name, key, certificate)


def expiry(pem: bytes) -> float:
    """When the first of these certificates ends: seconds since 1970."""
    return min(one.not_valid_after_utc.timestamp() for one in _read(pem))


def identities_in(pem: bytes) -> list[Identity]:
    """Of the first certificate in a file, its holder's."""
    try:
        names = _read(pem)[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    except (ValueError, x509.DuplicateExtension, x509.UnsupportedGeneralNameType) as error:
        raise SecurityError(f"the names in the certificate cannot be read: {error}") from None
    return from_uris(names.get_values_for_type(x509.UniformResourceIdentifier))


def names_in(pem: bytes) -> set[str]:
    """All names of the first certificate: hosts, addresses, and what it proves."""
    try:
        names = _read(pem)[0].extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound, x509.DuplicateExtension, x509.UnsupportedGeneralNameType):
        return set()
    return {str(name.value) for name in names}


def life(pem: bytes) -> tuple[float, float]:
    """From when until when the first certificate is good: seconds since 1970."""
    first = _read(pem)[0]
    return first.not_valid_before_utc.timestamp(), first.not_valid_after_utc.timestamp()


def is_signed_by(pem: bytes, ca: bytes) -> bool:
    try:
        _read(pem)[0].verify_directly_issued_by(_read(ca)[0])
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def _read(pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError:
        raise SecurityError("there is no certificate in it, expected PEM") from None


def _begun(subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _AHEAD)
        .not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def _named(name: str) -> x509.Name:
    try:
        return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    except ValueError as error:
        raise SecurityError(f"{name!r} is no name for a certificate: {error}") from None


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise SecurityError(f"{host!r} is no host: write a name or an address, without a port") from None


def _write(folder: Path, name: str, key: ec.EllipticCurvePrivateKey, certificate: x509.Certificate) -> None:
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    replace_file(folder / f"{name}.key", key.private_bytes(pem, pkcs8, serialization.NoEncryption()), secret=True)
    replace_file(folder / f"{name}.pem", certificate.public_bytes(pem))
