"""A Kubernetes API server that plays what a test wants: pods by list and watch, and Secrets. Real HTTP on loopback.

Tests change pods from their own thread; watches are told as the real server tells them. It forgets old versions (410),
hangs up, and goes away and comes back at the same address, when it is told to.
"""

import asyncio
import json
import threading
from concurrent.futures import Future
from contextlib import suppress
from itertools import count

from aiohttp import web

from mercast.processes import free_addresses

TOKEN = "let-me-in"


def pod(
    name, ip="10.0.0.1", *, namespace="a", cluster=None, number=0, role="broker", port=None, phase="Running", **more
):
    """As the API tells of one."""
    labels = {
        "app.kubernetes.io/name": "mercast",
        "app.kubernetes.io/instance": "try",
        "mercast/cluster": cluster or namespace,
        "mercast/cluster-number": str(number),
        "mercast/role": role,
    }
    ports = [{"name": "peer", "containerPort": port}] if port else []
    return {
        "metadata": {"name": name, "namespace": namespace, "labels": labels | more.pop("labels", {}), **more},
        "spec": {"containers": [{"name": "broker", "ports": ports}]},
        "status": {"phase": phase, **({"podIP": ip} if ip else {})},
    }


class ScriptedKubernetes:
    def __init__(self, folder, tls=None):
        """`tls` is its side of TLS, if it is to be HTTPS."""
        self._tls = tls
        self.address = free_addresses(1)[0]
        self.kubeconfig = folder / "kubeconfig.yaml"
        self.kubeconfig.write_text(json.dumps(_kubeconfig(self.address)))
        self.asked = []
        """What was asked for, in order: method and path, with a mark for a watch."""
        self.forbidden = set()
        """Kinds of things, or paths, that nobody may have."""
        self.secrets = {}
        self.on_create = lambda _namespace, _secret: None
        """Called before a Secret is made: somebody else may be faster."""
        self._pods, self._log, self._versions, self._oldest = {}, [], count(1), 0
        self._version = 0
        self._loop = asyncio.new_event_loop()
        self._changed, self._dropped = None, 0
        self._runner = None

    # -- what tests do with it ---------------------------------------------------------------------------------------

    def __enter__(self):
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.come()
        return self

    def __exit__(self, *_):
        self.go()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def come(self):
        self._in_loop(self._come())

    def go(self):
        """Nobody is at the address; all connections end."""
        self._in_loop(self._go())

    def put(self, *pods):
        for one in pods:
            self._in_loop(self._put(one))

    def delete(self, name, namespace="a"):
        self._in_loop(self._delete(namespace, name))

    def bookmark(self):
        """To all watches, whatever they watch."""
        self._in_loop(self._tell("BOOKMARK", {"metadata": {}}))

    def forget(self):
        """All that was before now: watches from an older version are answered 410, those that are open too."""
        self._in_loop(self._forget())

    def hang_up(self):
        """In the middle of a line."""
        self._in_loop(self._hang_up())

    def lists(self):
        return [what for what in self.asked if what.startswith("GET") and what.endswith("/pods")]

    def watches(self):
        return [what for what in self.asked if what.endswith("watch")]

    def _in_loop(self, work):
        done: Future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return done.result(30)

    # -- what it does ------------------------------------------------------------------------------------------------

    async def _come(self):
        app = web.Application(middlewares=[self._door])
        at = "/api/v1/namespaces/{namespace}"
        app.router.add_get(f"{at}/pods", self._list)
        app.router.add_get(f"{at}/pods/{{name}}", self._read)
        app.router.add_get(f"{at}/secrets/{{name}}", self._secret)
        app.router.add_post(f"{at}/secrets", self._create)
        app.router.add_put(f"{at}/secrets/{{name}}", self._replace)
        self._changed = asyncio.Event()
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        host, port = self.address.split(":")
        await web.TCPSite(self._runner, host, int(port), reuse_address=True, ssl_context=self._tls).start()

    async def _go(self):
        if self._runner is not None:
            self._dropped += 1
            self._wake()
            await self._runner.cleanup()
            self._runner = None

    async def _put(self, one):
        key = one["metadata"]["namespace"], one["metadata"]["name"]
        kind = "MODIFIED" if key in self._pods else "ADDED"
        self._pods[key] = one
        await self._tell(kind, one)

    async def _delete(self, namespace, name):
        await self._tell("DELETED", self._pods.pop((namespace, name)))

    async def _tell(self, kind, one):
        self._version = next(self._versions)
        one["metadata"]["resourceVersion"] = str(self._version)
        self._log.append((self._version, kind, json.loads(json.dumps(one))))
        self._wake()

    async def _forget(self):
        self._version = next(self._versions)
        self._oldest, self._log = self._version, []
        self._wake()

    async def _hang_up(self):
        self._dropped += 1
        self._wake()

    def _wake(self):
        self._changed.set()
        self._changed = asyncio.Event()

    @web.middleware
    async def _door(self, request, handler):
        path = request.path.removeprefix("/api/v1/namespaces/")
        self.asked.append(f"{request.method} {path}" + (" watch" if "watch" in request.query else ""))
        if request.headers.get("Authorization", "").lower() != f"bearer {TOKEN}":
            return _status(401, "Unauthorized")
        kind = path.split("/")[1]
        if {kind, path} & self.forbidden:
            return _status(403, f'{kind} is forbidden: User "x" cannot {request.method.lower()} resource "{kind}"')
        return await handler(request)

    async def _read(self, request):
        found = self._pods.get((request.match_info["namespace"], request.match_info["name"]))
        return web.json_response(found) if found else _status(404, f'pods "{request.match_info["name"]}" not found')

    async def _list(self, request):
        if "watch" in request.query:
            return await self._watch(request)
        items = [one for one in self._pods.values() if _selected(one, request)]
        return web.json_response({"items": items, "metadata": {"resourceVersion": str(self._version)}})

    async def _watch(self, request):
        since = int(request.query["resourceVersion"])
        if since < self._oldest:
            return _status(410, "too old resource version")
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        with suppress(ConnectionResetError):  # whoever watches may be gone
            await self._tell_on(request, response, since)
        return response

    async def _tell_on(self, request, response, since):
        dropped = self._dropped
        while True:
            changed = self._changed
            if since < self._oldest:
                gone = {"kind": "Status", "code": 410, "message": "too old resource version"}
                await response.write(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")
                return
            if dropped != self._dropped:
                await response.write(b'{"type": "ADDED", "obj')
                request.transport.abort()
                return
            for version, kind, one in self._log:
                if version > since and (kind == "BOOKMARK" or _selected(one, request)):
                    await response.write(json.dumps({"type": kind, "object": one}).encode() + b"\n")
            since = self._version
            await changed.wait()

    async def _secret(self, request):
        key = request.match_info["namespace"], request.match_info["name"]
        found = self.secrets.get(key)
        return web.json_response(found) if found else _status(404, f'secrets "{key[1]}" not found')

    async def _create(self, request):
        secret, namespace = await request.json(), request.match_info["namespace"]
        self.on_create(namespace, secret)
        key = namespace, secret["metadata"]["name"]
        if key in self.secrets:
            return _status(409, f'secrets "{key[1]}" already exists')
        return web.json_response(self.keep(namespace, secret), status=201)

    async def _replace(self, request):
        secret, namespace = await request.json(), request.match_info["namespace"]
        before = self.secrets[namespace, secret["metadata"]["name"]]
        if secret["metadata"].get("resourceVersion") != before["metadata"]["resourceVersion"]:
            return _status(409, "the object has been modified")
        return web.json_response(self.keep(namespace, secret))

    def keep(self, namespace, secret):
        secret["metadata"] |= {"namespace": namespace, "resourceVersion": str(next(self._versions))}
        self.secrets[namespace, secret["metadata"]["name"]] = secret
        return secret


def _selected(one, request):
    """By namespace and by a label selector of the sorts that are used here."""
    if one["metadata"]["namespace"] != request.match_info["namespace"]:
        return False
    labels = one["metadata"]["labels"]
    for part in request.query["labelSelector"].replace("(broker,edge)", "(broker;edge)").split(","):
        if " in " in part:
            key, _, values = part.partition(" in ")
            if labels.get(key) not in values.strip("()").split(";"):
                return False
        else:
            key, _, value = part.partition("=")
            if labels.get(key) != value:
                return False
    return True


def _status(code, message):
    return web.json_response({"kind": "Status", "code": code, "message": message}, status=code)


def _kubeconfig(address):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "scripted", "cluster": {"server": f"http://{address}"}}],
        "users": [{"name": "broker", "user": {"token": TOKEN}}],
        "contexts": [{"name": "scripted", "context": {"cluster": "scripted", "user": "broker"}}],
        "current-context": "scripted",
    }
