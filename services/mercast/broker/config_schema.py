"""The part of the chart's values.schema.json that is about the brokers' own configuration, made from that itself:
python -m mercast.broker.config_schema charts/mercast/values.schema.json puts it into the file."""

import json
import sys
from pathlib import Path
from typing import Any

from mercast.broker.config import BrokerConfig
from mercast.routing.strategies import STRATEGIES

GIVEN_BY_THE_CHART = (
    "id", "cluster", "cluster_number", "strategy", "listen", "peer_listen", "admin_listen", "advertise",
    "peer_advertise", "tls_cert", "tls_key", "peer_cert", "peer_key", "peer_ca", "tokens", "admin_cert", "admin_key",
    "admin_token", "insecure", "members", "seeds", "links", "joins", "exports", "imports", "taps", "taps_prefix",
    "membership", "ids_per_cluster", "kubernetes_namespace", "kubernetes_pod", "kubernetes_labels",
    "backbone_namespaces",
)  # fmt: skip
"""It knows these, or has values of its own for them."""


def schema() -> dict[str, Any]:
    """Of the keys that may be given under `config`."""
    properties = BrokerConfig.model_json_schema()["properties"]
    wanted = {key: _plain(one) for key, one in properties.items() if key not in GIVEN_BY_THE_CHART}
    return {"type": "object", "additionalProperties": False, "properties": wanted}


def _plain(said: dict[str, Any]) -> dict[str, Any]:
    """Without choices between types, of which errors tell little; and without what is no word of JSON schemas."""
    kinds = [one for one in said.get("anyOf", [said]) if one.get("type") != "null"]
    found: dict[str, Any] = {"description": " ".join(said["description"].split())}
    for kind in kinds:
        found |= {key: value for key, value in kind.items() if key not in ("title", "description", "default", "format")}
    if len(kinds) > 1:  # a size: a number, or one with a unit
        found |= {"type": [kind["type"] for kind in kinds], "minimum": said.get("ge", 0)}
    return found


def put_into(text: str) -> str:
    """The whole schema of the chart with this part anew."""
    whole = json.loads(text)
    whole["definitions"]["config"] = schema()
    whole["properties"]["strategy"]["enum"] = list(STRATEGIES)
    return json.dumps(whole, indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    file = Path(sys.argv[1])
    file.write_text(put_into(file.read_text(encoding="utf-8")), encoding="utf-8")
