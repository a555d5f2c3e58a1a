"""The curves as one HTML file that needs nothing beside it."""

from plotly.graph_objects import Scatter
from plotly.subplots import make_subplots
from soak.samples import MEMORY_OF

MIB = 1024 * 1024


def plot(samples, events, file):
    names = list(samples[0].sizes)
    figure = make_subplots(rows=len(names), cols=1, shared_xaxes=True, subplot_titles=names, vertical_spacing=0.01)
    for row, name in enumerate(names, 1):
        unit = MIB if name == MEMORY_OF else 1
        for broker in sorted({sample.broker for sample in samples}):
            mine = [sample for sample in samples if sample.broker == broker]
            curve = Scatter(
                x=[sample.seconds / 60 for sample in mine],
                y=[sample.sizes[name] / unit for sample in mine],
                name=f"broker {broker}",
                legendgroup=broker,
                showlegend=row == 1,
                line={"color": f"hsl({broker * 83 % 360}, 70%, 40%)"},
            )
            figure.add_trace(curve, row=row, col=1)
        figure.update_yaxes(rangemode="tozero", row=row, col=1)
    figure.update_layout(shapes=[_line(*event) for event in events])  # one by one takes plotly minutes
    figure.update_xaxes(title="minutes", row=len(names), col=1)
    figure.update_layout(height=220 * len(names), title="mercast soak: memory (MiB) and tables of each broker")
    figure.write_html(file)


def _line(seconds, what):
    """Across all curves."""
    style = {"dash": "dot", "width": 1, "color": "red" if "kill" in what else "grey"}
    return {"type": "line", "x0": seconds / 60, "x1": seconds / 60, "yref": "paper", "y0": 0, "y1": 1, "line": style}
