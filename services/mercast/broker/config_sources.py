"""Where the configuration comes from, and how a mistake in it is told."""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from pydantic_settings import BaseSettings, EnvSettingsSource

PREFIX = "MERCAST_"
"""Of environment variables."""


class ConfigError(Exception):
    """What is wrong with a configuration, a line for each mistake."""


class Given(NamedTuple):
    """A value, and where it came from."""

    value: Any
    origin: str


def environment_variable(key: str) -> str:
    return f"{PREFIX}{key.upper()}"


def flag(key: str) -> str:
    return f"--{key.replace('_', '-')}"


def from_file(file: Path | None) -> dict[str, Given]:
    if file is None:
        return {}
    try:
        text = file.read_text(encoding="utf-8")
        root = yaml.compose(text, yaml.SafeLoader)
        document = yaml.safe_load(text)
    except OSError as error:
        raise ConfigError(f"{file} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"{file} is not YAML: {error}") from None
    if document is None:
        return {}
    if not isinstance(document, dict):
        raise ConfigError(f"{file} holds a {type(document).__name__}, expected keys with their values, as in id: 1")
    lines: dict[str, int] = {}
    for key, _ in root.value:
        if key.value in lines:
            raise ConfigError(f"{file}, line {key.start_mark.line + 1}: {key.value} is given twice")
        lines[key.value] = key.start_mark.line + 1
    return {str(key): Given(value, f"{file}, line {lines.get(str(key), 1)}") for key, value in document.items()}


def from_environment(model: type[BaseSettings]) -> dict[str, Given]:
    """Variables that are no key of ours are let be: clients have some, and Kubernetes names its own after services."""
    found = EnvSettingsSource(model)()
    return {key: Given(value, environment_variable(key)) for key, value in found.items()}


def from_flags(flags: Mapping[str, Any]) -> dict[str, Given]:
    return {key: Given(value, flag(key)) for key, value in flags.items() if value is not None}


def explained(
    mistake: dict[str, Any], origins: Mapping[str, str], known: Collection[str], secret: Collection[str] = ()
) -> str:
    """One mistake, in words; what was given for a secret key is not told."""
    key, *at = mistake["loc"]
    origin = origins.get(key, "by default")
    if mistake["type"] == "missing":
        return f"{key} is not given: use {flag(key)}, {environment_variable(key)} or {key} in the file"
    if mistake["type"] == "extra_forbidden":
        close = get_close_matches(key, known, n=1)
        meant = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
        return f"{key} ({origin}) is unknown: {meant}"
    place = "".join(f"[{one}]" for one in at if isinstance(one, int))
    error = mistake.get("ctx", {}).get("error")
    said = str(error) if error is not None else mistake["msg"].replace("Input should be", "expected", 1)
    what = _PLAINER.get(mistake["type"], said)
    if key in secret:
        return f"{key} ({origin}): {what}"
    given = str(mistake["input"]) if isinstance(mistake["input"], Path) else mistake["input"]
    return f"{key}{place} = {given!r} ({origin}): {what}"


_PLAINER = {
    "bool_parsing": "expected true or false",
    "byte_size": "expected a number of bytes, such as 8388608 or 8MiB",
    "byte_size_unit": "expected a number of bytes, such as 8388608 or 8MiB",
    "float_parsing": "expected a number",
    "int_parsing": "expected a whole number",
    "string_too_short": "expected at least 1 character",
    "string_type": "expected a text",
}
"""For pydantic's own words, by the type of a mistake."""
