"""One HTML file that needs nothing beside it, with tables and figures: no network, no other file.

What comes here as text is escaped here; what comes as markup (`body`, `rows`) was made by these functions.
"""

import json
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from typing import Any


def page(title: str, body: str, figures: list[dict[str, Any]]) -> str:
    """`figures` as `Figure.plain` gives them, numbered as their places in the body are."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(title)}</title>
<style>
{_file("report.css")}</style>
</head>
<body>
<main>
{body}
</main>
{_drawing(figures) if figures else ""}</body>
</html>
"""


def table(headings: Iterable[str], rows: str, kind: str) -> str:
    head = "".join(f"<th>{escape(heading)}</th>" for heading in headings)
    return (
        f'<div class="wide"><table class="{kind}"><thead><tr>{head}</tr></thead><tbody>\n{rows}\n</tbody></table></div>'
    )


def place_of(figure: dict[str, Any], number: int) -> str:
    """Where a figure will be drawn."""
    return (
        f"<figure><figcaption>{escape(figure['title'])}</figcaption>"
        f'<div class="plot" id="figure-{number}" role="img" aria-label="{escape(figure["title"])}"></div></figure>'
    )


def _drawing(figures: list[dict[str, Any]]) -> str:
    """Plotly, once, and what it shall draw. In the data no tag can begin, so none can end the script."""
    from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

    data = json.dumps(figures).replace("<", "\\u003c")
    return f"""<script>{get_plotlyjs()}</script>
<script type="application/json" id="figures">{data}</script>
<script>
{_file("report.js")}</script>
"""


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
