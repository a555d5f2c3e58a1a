"""What tests take out of docs/wire.md."""

import re
from pathlib import Path

DOCUMENT = Path(__file__).parents[1] / "docs/wire.md"


def example_client() -> str:
    """The source of the client in forty lines; it takes host and port as its arguments."""
    (source,) = re.findall(r"^```python\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return source


def session() -> list[str]:
    (lines,) = re.findall(r"^```\n(.*?)^```", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL)
    return lines.splitlines()
