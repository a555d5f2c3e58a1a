"""What a broker is told to be and made of, in plain data. Nothing secret is in it."""

import platform
import re
from functools import cache
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

from mercast import __version__
from mercast.broker.config import BrokerConfig
from mercast.broker.observed import Observed
from mercast.security.state import in_file
from mercast.wire.hello import VERSIONS

NOT_SHOWN = "(given, not shown)"

_PASSWORD = re.compile(r"(?<=://)[^/@\s]*@")
"""What stands before the host in a URL."""


def configuration(broker: Observed) -> dict[str, Any]:
    """By key. Of files, where they are and never what is in them."""
    config = broker.config
    return {"broker": broker.core.me, "config": {key: _shown(config, key) for key in BrokerConfig.model_fields}}


def _shown(config: BrokerConfig, key: str) -> Any:
    value = getattr(config, key)
    if not BrokerConfig.model_fields[key].repr and value and not in_file(value):
        return NOT_SHOWN
    return _plain(value)


def _plain(value: Any) -> Any:
    match value:
        case list():
            return [_plain(one) for one in value]
        case str() | Path():
            return without_passwords(str(value))
    return value


def without_passwords(text: str) -> str:
    return _PASSWORD.sub("…@", text)


@cache
def versions() -> dict[str, Any]:
    """Of what runs here. Reads files: not in an event loop."""
    packages = {str(one.metadata["Name"]): one.version for one in distributions()}
    return {
        "mercast": __version__,
        "wire": list(VERSIONS),
        "python": platform.python_version(),
        "system": platform.platform(),
        "packages": dict(sorted(packages.items(), key=lambda item: item[0].lower())),
    }
