"""docs/configuration.md, made from the configuration itself: python -m mercast.broker.config_docs > FILE."""

import sys
from typing import Any, Literal, get_args, get_origin

from pydantic import ByteSize
from pydantic.fields import FieldInfo

from mercast.broker.config import BrokerConfig
from mercast.broker.config_sources import environment_variable, flag
from mercast.routing.strategies import STRATEGIES

_HEAD = """\
# Configuration of a broker

Made by `make docs` from the configuration itself.

Each key can be given in a YAML file (`mercast broker --config FILE`), as an environment variable or as a flag. Later
wins: defaults, file, environment, flags. `mercast broker --check-config` tells all mistakes at once, each with its key
and where the value came from, and starts nothing.

In variables and flags, lists are separated by commas. Sizes may have a unit (`8MiB`). An address is `host:port`, with
IPv6 in brackets (`[::1]:7470`); without a port it has the usual one.

```yaml
id: 1
cluster: trading
peer_listen: 127.0.0.1:7471
members: ["1=127.0.0.1:7471", "2=127.0.0.1:7481", "3=127.0.0.1:7491"]
heart_beat: 0.5
```

| key | environment variable | flag | default | meaning |
|---|---|---|---|---|
"""


def document() -> str:
    return _HEAD + "".join(_row(key, field) for key, field in BrokerConfig.model_fields.items())


def _row(key: str, field: FieldInfo) -> str:
    choices = list(STRATEGIES) if key == "strategy" else _choices(field.annotation)
    one_of = f" One of {', '.join(f'`{choice}`' for choice in choices)}." if choices else ""
    cells = (f"`{key}`", f"`{environment_variable(key)}`", _flags(key, field), _default(field))
    meaning = " ".join((field.description or "").split())
    return f"| {' | '.join(cells)} | {meaning}{one_of} |\n"


def _choices(annotation: Any) -> list[str]:
    return list(get_args(annotation)) if get_origin(annotation) is Literal else []


def _flags(key: str, field: FieldInfo) -> str:
    return f"`{flag(key)}`" + (f", `{flag(f'no_{key}')}`" if field.annotation is bool else "")


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "must be given"
    match field.default:
        case None | "" | []:
            return ""
        case [*several]:
            return f"`{','.join(several)}`"
        case bool(value):
            return f"`{str(value).lower()}`"
        case ByteSize() as size:
            return f"`{size.human_readable(separator='').replace('.0', '')}`"
        case value:
            return f"`{value}`"


if __name__ == "__main__":
    sys.stdout.write(document())
