"""A report as one HTML file that needs nothing beside it. Whatever comes from taps is text, and escaped here."""

from html import escape

from mercast_streaming.audit.report import Named, Report, headline, moment, steps, summary

_STYLE = """
:root { color-scheme: light dark; --page: #fff; --ink: #1d232b; --soft: #5b6673; --line: #d9dee5; --panel: #f5f7f9;
  --good: #12683a; --bad: #a1260d; --doubt: #7a5500; }
@media (prefers-color-scheme: dark) {
  :root { --page: #14181d; --ink: #e4e8ed; --soft: #9aa5b1; --line: #343c46; --panel: #1c2229;
    --good: #7fdca3; --bad: #ff9d86; --doubt: #e6c06a; }
}
body { margin: 0; background: var(--page); color: var(--ink); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 68rem; margin: 0 auto; padding: 1.5rem 1rem 4rem; }
h1 { font-size: 1.75rem; margin: 0 0 .25rem; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
.clean { color: var(--good); } .wrong { color: var(--bad); } .little { color: var(--doubt); }
table { border-collapse: collapse; font-size: .93rem; }
td { padding: .25rem 1.5rem .25rem 0; border-bottom: 1px solid var(--line); white-space: pre-wrap; }
td + td { text-align: right; font-variant-numeric: tabular-nums; }
details { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0; padding: .5rem .75rem; }
summary { cursor: pointer; overflow-wrap: anywhere; }
ol { margin: .5rem 0; padding-left: 1.5rem; }
code, li { font: .85rem/1.5 ui-monospace, monospace; overflow-wrap: anywhere; }
p { color: var(--soft); margin: .25rem 0; }
"""

_VERDICTS = ("clean", "wrong", "little")
_SAID = ("No wrong delivery was found.", "Some deliveries were wrong.", "Too much is not known.")


def page(report: Report, verdict: int) -> str:
    """`verdict` is the exit code."""
    lines = "\n".join(f"<tr><td>{escape(label)}</td><td>{escape(what)}</td></tr>" for label, what in summary(report))
    filters = "".join(f"<li>{escape(one)}</li>" for one in report.unreadable_filters)
    unread = f"<h2>Filters that could not be judged</h2><ol>{filters}</ol>" if filters else ""
    named = "\n".join(map(_named, report.named))
    all_wrong = sum(report.wrong.values())
    more = f"<p>{len(report.named):,} are shown.</p>" if named else ""
    wrong = f"<h2>{all_wrong:,} wrong</h2>{more}\n{named}" if all_wrong else ""
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Audit</title>
<style>{_STYLE}</style>
<main>
<h1>Audit</h1>
<p class="{_VERDICTS[verdict]}">{_SAID[verdict]}</p>
<table>
{lines}
</table>
{wrong}
{unread}
</main>
</html>
"""


def _named(one: Named) -> str:
    path = "".join(f"<li>{escape(step)}</li>" for step in steps(one))
    content = f"<p>{escape(one.type or '?')}, {escape(moment(one.time))}</p><code>{escape(one.attributes or '')}</code>"
    return f"<details><summary>{escape(headline(one))}</summary>{content}<ol>{path}</ol></details>"
