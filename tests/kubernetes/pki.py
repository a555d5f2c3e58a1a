"""Certificates of a Kubernetes of our own, and who is who there: one CA, a certificate for each part, a kubeconfig
for those that call the API."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAYS = 30


class Authority:
    def __init__(self, folder: Path, api: str) -> None:
        """`api` is the address by which the API server is called."""
        self.folder, self._api = folder, api
        folder.mkdir(parents=True)
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("kubernetes-ca")
        usage = _usage(digital_signature=True, key_cert_sign=True, crl_sign=True)
        basic = x509.BasicConstraints(ca=True, path_length=None)
        builder = self._builder(self._name, self._key).add_extension(basic, True).add_extension(usage, True)
        self.ca = folder / "ca.crt"
        self.ca.write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        self._accounts()

    def _accounts(self) -> None:
        """The key that tokens of service accounts are signed with."""
        key = rsa.generate_private_key(65537, 2048)
        (self.folder / "accounts.key").write_bytes(_private(key))
        public = serialization.PublicFormat.SubjectPublicKeyInfo
        pem = key.public_key().public_bytes(serialization.Encoding.PEM, public)
        (self.folder / "accounts.pub").write_bytes(pem)

    def certificate(self, file: str, name: str, group: str = "", hosts: Sequence[str] = ()) -> None:
        """<file>.crt and <file>.key, for `name` of `group`, good for both ends of a connection."""
        key = ec.generate_private_key(ec.SECP256R1())
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
        builder = (
            self._builder(_name(name, group), key)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
            .add_extension(_usage(digital_signature=True, key_encipherment=True), True)
            .add_extension(x509.ExtendedKeyUsage(usages), False)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), False)
        (self.folder / f"{file}.crt").write_bytes(_pem(builder.sign(self._key, hashes.SHA256())))
        (self.folder / f"{file}.key").write_bytes(_private(key))

    def kubeconfig(self, file: str, name: str, group: str = "") -> Path:
        """For somebody who calls the API."""
        self.certificate(file, name, group)
        paths = {part: str(self.folder / f"{file}.{end}") for part, end in (("certificate", "crt"), ("key", "key"))}
        user = {"client-certificate": paths["certificate"], "client-key": paths["key"]}
        place = self.folder / f"{file}.conf"
        place.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [
                        {"name": "it", "cluster": {"server": self._api, "certificate-authority": str(self.ca)}}
                    ],
                    "users": [{"name": "me", "user": user}],
                    "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
                    "current-context": "it",
                }
            )
        )
        return place

    def _builder(self, name: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.now(UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(minutes=5))
            .not_valid_after(now + timedelta(days=_DAYS))
        )


def _name(common: str, group: str = "") -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if group:
        parts.append(x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(**given: bool) -> x509.KeyUsage:
    every = (
        "digital_signature content_commitment key_encipherment data_encipherment key_agreement key_cert_sign crl_sign"
    )
    return x509.KeyUsage(**(dict.fromkeys([*every.split(), "encipher_only", "decipher_only"], False) | given))


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    plain = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, plain, serialization.NoEncryption())
