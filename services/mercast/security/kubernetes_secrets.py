"""Makes the Secrets of brokers in Kubernetes. What is there is kept: a CA and tokens for ever, certificates while they
are good. So it can run as often as one likes, and twice at once: whoever comes second takes what the first has made.
"""

import base64
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import time
from typing import Any

from mercast.membership.kubernetes_api import CONFLICT, FORBIDDEN, NOT_FOUND, Api, ApiError
from mercast.security.certificates import CA, is_signed_by, life, make_ca, make_certificate, names_in
from mercast.security.errors import SecurityError
from mercast.security.identity import Identity
from mercast.security.secret_plan import CAPlan, CertificatePlan, Plan, TokensPlan
from mercast.security.tokens import new_token, with_token

CERTIFICATE, KEY, AUTHORITY = "tls.crt", "tls.key", "ca.crt"
"""Keys of Secrets, as cert-manager has them."""

TOKENS, TOKEN, ADMIN_TOKEN = "tokens.yaml", "token", "admin-token"

_TLS, _OPAQUE = "kubernetes.io/tls", "Opaque"
_LEFT = 1 / 3
"""Of a certificate's life: with less, it is renewed."""

_TRIES = 5
"""While others change the same Secret."""

Data = Mapping[str, bytes]


class Secrets:
    def __init__(self, api: Api, plan: Plan) -> None:
        self._api, self._plan = api, plan

    async def carry_out(self) -> AsyncIterator[str]:
        """What was done, a line each. SecurityError if something cannot be."""
        if self._plan.ca is not None:
            async for done in self._certificates(self._plan.ca):
                yield done
        if self._plan.tokens is not None:
            async for done in self._tokens(self._plan.tokens):
                yield done

    async def _certificates(self, plan: CAPlan) -> AsyncIterator[str]:
        ca, done = await self._settle(plan.namespace, plan.name, _TLS, _new_ca, _never)
        yield done
        where = f"{plan.namespace}/{plan.name}"
        if life(_of(ca, CERTIFICATE, where))[1] < time():
            raise SecurityError(f"the CA in Secret {where} has ended: delete it, and all certificates are made anew")
        for one in self._plan.certificates:
            yield (await self._settle(one.namespace, one.name, _TLS, _signed(ca, where, one), _unfit(ca, one)))[1]

    async def _tokens(self, plan: TokensPlan) -> AsyncIterator[str]:
        """The same in all namespaces, as far as there are none yet."""
        first, *others = plan.namespaces
        made = await self._known_tokens(plan) or _new_tokens()
        data, done = await self._settle(first, plan.name, _OPAQUE, lambda: made, _never)
        yield done
        for namespace in others:
            found, done = await self._settle(namespace, plan.name, _OPAQUE, lambda: data, _never)
            yield done if found == data else f"{done}, though its tokens are others than in namespace {first}"

    async def _known_tokens(self, plan: TokensPlan) -> Data | None:
        """Of the first namespace that has any."""
        for namespace in plan.namespaces:
            found = await self._found(namespace, plan.name)
            if found is not None:
                data = _data(found)
                for key in (TOKENS, TOKEN, ADMIN_TOKEN):
                    _of(data, key, f"{namespace}/{plan.name}")
                return data
        return None

    # -- one Secret --------------------------------------------------------------------------------------------------

    async def _settle(
        self, namespace: str, name: str, kind: str, make: Callable[[], Data], unfit: Callable[[Data], str]
    ) -> tuple[Data, str]:
        """A Secret that is there and fits, and what was done for that; `unfit` says why one has to be replaced."""
        where = f"Secret {namespace}/{name}"
        for _ in range(_TRIES):
            found = await self._found(namespace, name)
            why = unfit(_data(found)) if found is not None else ""
            if found is not None and not why:
                return _data(found), f"{where}: kept"
            data = make()
            try:
                with _allowed(namespace):
                    if found is None:
                        await self._api.create_secret(namespace, self._secret(name, kind, data))
                        return data, f"{where}: made"
                    await self._api.replace_secret(namespace, found | {"data": _encoded(data)})
                    return data, f"{where}: made anew: {why}"
            except ApiError as error:
                if error.status != CONFLICT:
                    raise
        raise SecurityError(f"{where} is changed by others all the time: nothing came of {_TRIES} tries")

    async def _found(self, namespace: str, name: str) -> dict[str, Any] | None:
        with _allowed(namespace):
            try:
                return await self._api.secret(namespace, name)
            except ApiError as error:
                if error.status == NOT_FOUND:
                    return None
                raise

    def _secret(self, name: str, kind: str, data: Data) -> dict[str, Any]:
        about = {"name": name, "labels": dict(self._plan.labels)}
        return {"apiVersion": "v1", "kind": "Secret", "type": kind, "metadata": about, "data": _encoded(data)}


@contextmanager
def _allowed(namespace: str) -> Iterator[None]:
    """What is forbidden tells what is needed."""
    try:
        yield
    except ApiError as error:
        if error.status != FORBIDDEN:
            raise
        need = f"a Role in namespace {namespace} must allow to get, create and update secrets"
        raise SecurityError(f"{error}: {need}") from None


# -- what is in them -------------------------------------------------------------------------------------------------


def _never(_: Data) -> str:
    """Is such a Secret replaced."""
    return ""


def _new_ca() -> Data:
    with TemporaryDirectory() as folder:
        make_ca(Path(folder))
        return _pair(Path(folder), CA)


def _signed(ca: Data, where: str, plan: CertificatePlan) -> Callable[[], Data]:
    def make() -> Data:
        with TemporaryDirectory() as name:
            folder = Path(name)
            (folder / f"{CA}.pem").write_bytes(_of(ca, CERTIFICATE, where))
            (folder / f"{CA}.key").write_bytes(_of(ca, KEY, where))
            identity = Identity(plan.cluster, plan.role)
            try:
                make_certificate(folder, plan.name, identity, plan.hosts, plan.days, plan.joins)
            except SecurityError as error:
                reason = str(error).replace(f"the CA in {folder}", f"the CA in Secret {where}")
                raise SecurityError(f"Secret {plan.namespace}/{plan.name}: {reason}") from None
            return {**_pair(folder, plan.name), AUTHORITY: ca[CERTIFICATE]}

    return make


def _unfit(ca: Data, plan: CertificatePlan) -> Callable[[Data], str]:
    identities = {str(Identity(cluster, plan.role)) for cluster in (plan.cluster, *plan.joins)}

    def why(data: Data) -> str:
        pem = data.get(CERTIFICATE, b"")
        try:
            began, ends = life(pem)
        except SecurityError as error:
            return str(error)
        if not data.get(KEY):
            return f"it had no {KEY}"
        if not is_signed_by(pem, ca[CERTIFICATE]) or data.get(AUTHORITY) != ca[CERTIFICATE]:
            return "it was signed by another CA"
        if names_in(pem) != identities | set(plan.hosts):
            return "its names were others"
        return "less than a third of its life was left" if ends - time() < _LEFT * (ends - began) else ""

    return why


def _new_tokens() -> Data:
    token, everything = new_token(), {"publish": ["*"], "subscribe": ["*"]}
    hashes = with_token("", "mercast", token, everything)
    return {TOKENS: hashes.encode(), TOKEN: token.encode(), ADMIN_TOKEN: new_token().encode()}


def _pair(folder: Path, name: str) -> dict[str, bytes]:
    return {CERTIFICATE: (folder / f"{name}.pem").read_bytes(), KEY: (folder / f"{name}.key").read_bytes()}


def _of(data: Data, key: str, where: str) -> bytes:
    if not data.get(key):
        raise SecurityError(f"Secret {where} has no {key}: delete it, or put that in")
    return data[key]


def _data(secret: dict[str, Any]) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (secret.get("data") or {}).items()}


def _encoded(data: Data) -> dict[str, str]:
    return {key: base64.b64encode(value).decode() for key, value in data.items()}
