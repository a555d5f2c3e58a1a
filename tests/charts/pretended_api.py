"""As much of the Kubernetes API as Helm asks for before it would install something: which kinds there are, and what is
there of them."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KINDS = {
    "v1": ("Namespace", "Service", "ServiceAccount", "ConfigMap", "Secret", "Pod", "PersistentVolumeClaim"),
    "apps/v1": ("StatefulSet", "Deployment"),
    "batch/v1": ("Job",),
    "policy/v1": ("PodDisruptionBudget",),
    "networking.k8s.io/v1": ("NetworkPolicy",),
    "rbac.authorization.k8s.io/v1": ("Role", "RoleBinding"),
}


def _plural(kind: str) -> str:
    return kind.lower().removesuffix("y") + ("ies" if kind.endswith("y") else "s")


def _said(there: dict[str, Any]) -> dict[str, Any]:
    """Answers by path."""
    groups = [one for one in KINDS if "/" in one]
    listed = [
        {"name": one.split("/")[0], "versions": [version], "preferredVersion": version}
        for one in groups
        for version in [{"groupVersion": one, "version": "v1"}]
    ]
    answers: dict[str, Any] = {
        "/version": {"major": "1", "minor": "34", "gitVersion": "v1.34.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1/namespaces/a/secrets": {"kind": "SecretList", "apiVersion": "v1", "items": []},  # releases
        "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed},
    }
    for group, kinds in KINDS.items():
        resources = [
            {"name": _plural(kind), "kind": kind, "namespaced": kind != "Namespace", "verbs": ["get", "list", "create"]}
            for kind in kinds
        ]
        path = f"/apis/{group}" if "/" in group else f"/api/{group}"
        answers[path] = {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group, "resources": resources}
    return answers | there


@contextmanager
def pretended(there: dict[str, Any]) -> Iterator[str]:
    """Its address. `there` is what is there beside, by path."""
    answers = _said(there)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.partition("?")[0])
            body = json.dumps(
                found or {"kind": "Status", "apiVersion": "v1", "reason": "NotFound", "code": 404}
            ).encode()
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
