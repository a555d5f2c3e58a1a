// Draws the figures of the report, in the colours of the page; again when the reader turns light into dark.
const figures = JSON.parse(document.getElementById("figures").textContent);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
// Plotly reads a little markup in labels: here they are plain text.
const plain = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;").replace(/>/g, "&gt;");

function traces(figure) {
  const ours = [...new Set(figure.series.filter((one) => !one.paper).map((one) => one.name))];
  return figure.series.map((one) => {
    const place = ours.indexOf(one.name); // the paper's series has the colour of ours that it stands beside
    const ink = place < 0 ? colour("ink") : colour("series-" + (1 + (place % 6)));
    const few = one.points.length <= 20;
    return {
      name: plain(one.paper ? one.name + " (paper)" : one.name),
      x: one.points.map((point) => point[0]),
      y: one.points.map((point) => point[1]),
      mode: one.points.length === 1 ? "markers" : few ? "lines+markers" : "lines",
      line: { color: ink, width: 2, dash: one.paper ? "dash" : "solid" },
      marker: one.paper
        ? { color: ink, size: 11, symbol: "diamond-open", line: { width: 2 } }
        : { color: ink, size: 6 },
    };
  });
}

function axis(label, log) {
  return {
    title: { text: plain(label), standoff: 8, font: { size: 13 } },
    type: log ? "log" : "linear",
    rangemode: log ? "normal" : "tozero",
    dtick: log ? 1 : undefined,
    gridcolor: colour("line"),
    linecolor: colour("line"),
    zerolinecolor: colour("line"),
    automargin: true,
  };
}

// Moments: a line from top to bottom, with a word beside it.
function marked(figure) {
  const marks = figure.marks || [];
  return {
    shapes: marks.map(([x]) => ({
      type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: colour("differs"), width: 1.5, dash: "dot" },
    })),
    annotations: marks.map(([x, what]) => ({
      x, y: 1, yref: "paper", xanchor: "left", yanchor: "top", showarrow: false, text: plain(what),
      font: { color: colour("differs"), size: 12 }, bgcolor: colour("panel"),
    })),
  };
}

function draw() {
  figures.forEach((figure, number) => {
    const layout = {
      font: { family: "system-ui, sans-serif", size: 13, color: colour("ink") },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 10, r: 12, t: 12, b: 10 },
      legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom" },
      showlegend: true,
      hovermode: "closest",
      xaxis: axis(figure.x, figure.log_x),
      yaxis: axis(figure.y, figure.log_y),
      ...marked(figure),
    };
    Plotly.react("figure-" + number, traces(figure), layout, { responsive: true, displayModeBar: false });
  });
}

draw();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
