"""The scoreboard as Markdown, and as one HTML file (`page.py`).

Whatever comes from experiments is text: it is escaped here, at the only place where it becomes markup.
"""

from collections import Counter
from collections.abc import Iterable
from html import escape
from typing import Any, TypeAlias

from mercast.lab.page import page, place_of, table

Result: TypeAlias = dict[str, Any]

VERDICTS = ("match", "holds", "differs")
MEANING = {
    "match": "within the tolerance of the claim",
    "holds": "the ordering and at least the stated factor hold",
    "differs": "neither; the last column says why",
}


def tally(results: Iterable[Result]) -> str:
    """How many rows have which verdict: 5 match, 2 holds."""
    counts = Counter(row["verdict"] for result in results for row in result["rows"])
    return ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS if counts[verdict]) or "no rows"


# -- Markdown --------------------------------------------------------------------------------------------------------


def markdown(results: list[Result]) -> str:
    lines = ["# Scoreboard", "", f"{_scale(results)}: {tally(results)}.", ""]
    lines += [f"- **{verdict}**: {meaning}" for verdict, meaning in MEANING.items()]
    lines += ["", "| claim | | paper | ours | verdict | why |", "|---|---|---|---|---|---|"]
    for result in results:
        for row in result["rows"]:
            lines.append(_cells(result["claim"], *(row[name] for name in ("name", "paper", "ours", "verdict", "why"))))
    lines += ["", "| claim | setting | run again | seconds |", "|---|---|---|---|"]
    for result in results:
        lines.append(_cells(result["claim"], result["title"], f"`{result['command']}`", str(result["seconds"])))
    return "\n".join([*lines, ""])


def _cells(*texts: str) -> str:
    """A cell is one line, and a bar would end it."""
    return "| " + " | ".join(" ".join(text.split()).replace("|", "\\|") for text in texts) + " |"


def _scale(results: list[Result]) -> str:
    return "Quick variants" if any(result["scale"] == "quick" for result in results) else "At the papers' own size"


# -- HTML ------------------------------------------------------------------------------------------------------------


def html(results: list[Result]) -> str:
    figures = [figure for result in results for figure in result.get("figures", ())]
    numbers = iter(range(len(figures)))
    sections = "\n".join(_section(result, numbers) for result in results)
    body = f"""<h1>Paper and ours</h1>
<p>{escape(_scale(results))}, {len(results)} claims: {escape(tally(results))}.</p>
{_summary(results)}
<dl class="key">
{"".join(f"<div><dt>{_verdict(one)}</dt><dd>{escape(meaning)}</dd></div>" for one, meaning in MEANING.items())}
</dl>
{sections}"""
    return page("mercast: paper and ours", body, figures)


def _summary(results: list[Result]) -> str:
    rows = "\n".join(
        f'<tr><td><a href="#{escape(result["claim"])}">{escape(result["claim"])}</a></td>'
        f"<td>{escape(result['title'])}</td><td>{_tallied(result)}</td>"
        f'<td class="number">{result["seconds"]:,.1f} s</td></tr>'
        for result in results
    )
    return table(("claim", "setting", "rows", "time"), rows, "summary")


def _section(result: Result, numbers: Iterable[int]) -> str:
    rows = "\n".join(
        f'<tr><td>{escape(row["name"])}</td><td class="number">{escape(row["paper"])}</td>'
        f'<td class="number">{escape(row["ours"])}</td><td>{_verdict(row["verdict"])}</td>'
        f'<td class="why">{escape(row["why"])}</td></tr>'
        for row in result["rows"]
    )
    drawn = "\n".join(
        place_of(figure, number) for figure, number in zip(result.get("figures", ()), numbers, strict=False)
    )
    error = f"<details><summary>where it broke</summary><pre>{escape(result.get('error', ''))}</pre></details>"
    return f"""<section id="{escape(result["claim"])}">
<h2><span>{escape(result["claim"])}</span> {escape(result["title"])}</h2>
{table(("", "paper", "ours", "verdict", "why"), rows, "rows")}
{error if "error" in result else ""}
<div class="figures">{drawn}</div>
<p class="again">Run again: <code>{escape(result["command"])}</code> ({result["seconds"]:,.1f} s)</p>
</section>"""


def _verdict(verdict: str) -> str:
    return f'<span class="verdict {escape(verdict)}">{escape(verdict)}</span>'


def _tallied(result: Result) -> str:
    counts = Counter(row["verdict"] for row in result["rows"])
    return " ".join(
        f'<span class="verdict {verdict}">{counts[verdict]} {verdict}</span>' for verdict in VERDICTS if counts[verdict]
    )
