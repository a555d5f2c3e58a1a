"""The Kubernetes API, as far as mercast asks it: pods are read, listed and watched; Secrets are read and written.

The library of Kubernetes is imported when somebody asks: it takes a second, and most brokers need none of it. It brings
credentials, their renewal and TLS; answers are taken as plain JSON. Its `Watch` is not used: that dials again by
itself, at once and for ever, and nobody is told.
"""

import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

IN_POD, KUBECONFIG = "KUBERNETES_SERVICE_HOST", "KUBECONFIG"
"""Variables of the environment: every pod has the first; the second names a file, which wins."""

UNREACHABLE, FORBIDDEN, NOT_FOUND, CONFLICT, GONE = 0, 403, 404, 409, 410
"""Statuses of errors; the first is ours."""

_OK = range(200, 300)
_ANSWER_WITHIN = 15.0
"""Seconds."""

_TYPES = {"Content-Type": "application/json", "Accept": "application/json"}


class ApiError(Exception):
    """What the API refuses, or why it cannot be asked."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


def unreachable(environment: Mapping[str, str] = os.environ) -> str:
    """Why there is no API to ask; empty if there may be."""
    if environment.get(KUBECONFIG) or environment.get(IN_POD):
        return ""
    return f"this is no pod of Kubernetes: neither {IN_POD} nor {KUBECONFIG} is set"


def prepare() -> None:
    """Import the library, before there is an event loop that this would hold up."""
    import kubernetes.aio  # noqa: F401


@asynccontextmanager
async def connected() -> "AsyncIterator[Api]":
    """ApiError, if nobody knows where it is. Nothing is asked yet."""
    from kubernetes.aio import client, config

    settings = client.Configuration()
    try:
        if file := os.environ.get(KUBECONFIG):
            if not Path(file).is_file():
                raise config.ConfigException(f"there is no file {file} ({KUBECONFIG})")
            await config.load_kube_config(config_file=file, client_configuration=settings, persist_config=False)
        elif why := unreachable():
            raise config.ConfigException(why)
        else:
            config.load_incluster_config(client_configuration=settings)
    except (config.ConfigException, OSError) as error:
        raise ApiError(UNREACHABLE, f"the Kubernetes API cannot be asked: {error}") from None
    async with client.ApiClient(configuration=settings) as calls:
        yield Api(calls)


class Api:
    def __init__(self, client: Any) -> None:
        self._client = client

    async def pod(self, namespace: str, name: str) -> dict[str, Any]:
        return await self._json("GET", _path(namespace, "pods", name))

    async def pods(self, namespace: str, selector: str) -> tuple[list[dict[str, Any]], str]:
        """Those that there are, and the version to watch from."""
        said = await self._json("GET", _path(namespace, "pods"), {"labelSelector": selector})
        return said.get("items") or [], said["metadata"]["resourceVersion"]

    async def changes(
        self, namespace: str, selector: str, version: str, seconds: int
    ) -> AsyncIterator[tuple[str, dict[str, Any]]]:
        """ADDED, MODIFIED, DELETED or BOOKMARK, and the object, for so long at most. ApiError with GONE if the version
        is too old to go on from."""
        queries = {
            "labelSelector": selector, "resourceVersion": version, "watch": "true", "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
        }  # fmt: skip
        with _explained():
            response = await self._request("GET", _path(namespace, "pods"), queries, None, seconds + _ANSWER_WITHIN)
            try:
                if response.status not in _OK:
                    raise _refusal(response.status, await response.read())
                async for line in response.content:
                    said = orjson.loads(line)
                    if said["type"] == "ERROR":
                        raise _refusal(said["object"].get("code", UNREACHABLE), orjson.dumps(said["object"]))
                    yield said["type"], said["object"]
            finally:
                response.close()

    async def secret(self, namespace: str, name: str) -> dict[str, Any]:
        return await self._json("GET", _path(namespace, "secrets", name))

    async def create_secret(self, namespace: str, secret: dict[str, Any]) -> dict[str, Any]:
        return await self._json("POST", _path(namespace, "secrets"), body=secret)

    async def replace_secret(self, namespace: str, secret: dict[str, Any]) -> dict[str, Any]:
        """ApiError with CONFLICT if it is no longer of the version that it says."""
        return await self._json("PUT", _path(namespace, "secrets", secret["metadata"]["name"]), body=secret)

    async def _json(
        self, method: str, path: str, queries: Mapping[str, str] | None = None, body: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        with _explained():
            response = await self._request(method, path, queries or {}, body, _ANSWER_WITHIN)
            text = await response.read()
            if response.status not in _OK:
                raise _refusal(response.status, text)
            said = orjson.loads(text)
            if not isinstance(said, dict):
                raise ValueError("no object")
            return said

    async def _request(
        self, method: str, path: str, queries: Mapping[str, str], body: dict[str, Any] | None, within: float
    ) -> aiohttp.ClientResponse:
        call = await self._client.param_serialize(
            method=method, resource_path=path, query_params=list(queries.items()), header_params=dict(_TYPES),
            body=body, auth_settings=["BearerToken"],
        )  # fmt: skip
        answer = await self._client.call_api(*call, _request_timeout=aiohttp.ClientTimeout(total=within))
        response: aiohttp.ClientResponse = answer.response
        return response


def _path(namespace: str, *what: str) -> str:
    return "/".join(("/api/v1/namespaces", namespace, *what))


@contextmanager
def _explained() -> Iterator[None]:
    """What may go wrong on the way is an ApiError."""
    try:
        yield
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise ApiError(UNREACHABLE, f"the Kubernetes API does not answer: {why}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ApiError(UNREACHABLE, f"what the Kubernetes API answers cannot be read: {error!r}") from None


def _refusal(status: int, text: bytes) -> ApiError:
    try:
        reason = orjson.loads(text)["message"]
    except (ValueError, KeyError, TypeError):
        reason = text[:200].decode(errors="replace") or f"status {status}"
    return ApiError(status, f"the Kubernetes API refuses ({status}): {reason}")
