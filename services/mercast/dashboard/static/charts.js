// History as lines, by plotly, which is loaded after the rest of the page. Charts that nobody sees are not drawn.

import { make } from "./words.js";

const BETWEEN = 40; // milliseconds

const CHARTS = {
  "plot-events": { from: "load", unit: "", lines: [["published", "published"], ["delivered", "delivered"], ["forwarded", "forwarded"]] },
  "plot-latency": { from: "figures", unit: " ms", log: true, lines: [["latency_p50_us", "p50", 1e-3], ["latency_p95_us", "p95", 1e-3], ["latency_p99_us", "p99", 1e-3]] },
  "plot-shares": { from: "figures", unit: "", range: true, lines: [["accuracy", "routing accuracy"], ["completeness", "completeness"]] },
  "plot-losses": { from: "both", unit: "", lines: [["dropped", "dropped", 1, "load"], ["doubled", "duplicates", 1, "figures"]] },
};

export class Charts {
  constructor() {
    this.seen = new Set();
    this.drawn = new Map();
    this.history = null;
    this.spent = 0; // milliseconds, until somebody takes them
    const watch = new IntersectionObserver((entries) => {
      for (const entry of entries) this.seen[entry.isIntersecting ? "add" : "delete"](entry.target.id);
      this.draw();
    }, { rootMargin: "120px" });
    for (const id of Object.keys(CHARTS)) watch.observe(document.getElementById(id));
    addEventListener("resize", () => { clearTimeout(this.later); this.later = setTimeout(() => { this.drawn.clear(); this.draw(); }, 150); });
  }

  async load() {
    if (window.Plotly) return;
    await new Promise((done, failed) => {
      const script = make("script", { src: "/plotly.js" });
      script.addEventListener("load", done);
      script.addEventListener("error", failed);
      document.head.append(script);
    });
    this.draw();
  }

  /** What the server gave; `stamp` says when it is something new. */
  take(history, minutes, now) {
    const { figures } = history;
    figures.at = figures.end;
    figures.doubled = figures.doubled_receipts.map((many, place) => (many + figures.doubled_deliveries[place]) / ((figures.end[place] - figures.begin[place]) / 1000));
    this.history = history;
    this.span = [now - minutes * 60000, now];
    this.drawn.clear();
    this.draw();
  }

  /** A new second of load, and a new window if there is one. Whether others are missing before it. */
  add(load, figures, minutes, now) {
    if (!this.history) return false;
    const gone = now - minutes * 60000;
    this.span = [gone, now];
    if (load) push(this.history.load, { ...load, at: now }, gone);
    const last = this.history.figures.end.at(-1) ?? 0;
    if (figures && figures.begin > last && figures.end > gone) return true;
    if (figures && figures.end > last) {
      const doubled = (figures.doubled_receipts + figures.doubled_deliveries) / ((figures.end - figures.begin) / 1000);
      push(this.history.figures, { ...figures, at: figures.end, doubled }, gone);
    }
    return false;
  }

  themed() {
    this.drawn.clear();
    this.draw();
  }

  /** One at a time, with room for others between them: together they would hold up the page. */
  draw() {
    clearTimeout(this.next);
    if (!window.Plotly || !this.history || document.hidden) return;
    for (const id of this.seen) {
      const stamp = this.stamp(CHARTS[id]);
      if (this.drawn.get(id) !== stamp) {
        this.drawn.set(id, stamp);
        const began = performance.now();
        this.plot(id, CHARTS[id]);
        this.spent += performance.now() - began;
        this.next = setTimeout(() => this.draw(), BETWEEN);
        return;
      }
    }
  }

  stamp(chart) {
    return `${chart.from === "figures" ? "" : this.history.load.at.at(-1)} ${chart.from === "load" ? "" : this.history.figures.at.at(-1)} ${this.span[1] - this.span[0]}`;
  }

  plot(id, chart) {
    const box = document.getElementById(id), look = style();
    const traces = chart.lines.map(([name, title, scale = 1, from = chart.from], place) => {
      const source = this.history[from], values = source[name] ?? [];
      return {
        x: source.at.map((at) => new Date(at)), y: values.map((value) => (value === null ? null : value * scale)), name: title, mode: "lines", connectgaps: false,
        line: { color: look.series[place], width: 1.75, shape: chart.from === "figures" ? "hv" : "linear" }, hovertemplate: `%{y:,.4~g}${chart.unit}<extra>${title}</extra>`,
      };
    });
    if (!traces.some((trace) => trace.y.some((value) => value !== null && value !== undefined))) {
      window.Plotly.purge(box);
      box.replaceChildren(make("p", { class: "nothing" }, chart.from === "figures" ? "No window yet: these figures come from Spark." : "Nothing yet."));
      return;
    }
    box.querySelector(".nothing")?.remove();
    const positive = traces.some((trace) => trace.y.some((value) => value > 0));
    const axis = { gridcolor: look.grid, zerolinecolor: look.grid, linecolor: look.grid, tickfont: { color: look.soft, size: 12 }, fixedrange: true };
    window.Plotly.react(box, traces, {
      autosize: true, margin: { l: 52, r: 8, t: 8, b: 44 }, paper_bgcolor: "transparent", plot_bgcolor: "transparent", font: { family: look.font, color: look.text, size: 12.5 },
      showlegend: true, legend: { orientation: "h", x: 0, y: -0.16, yanchor: "top", font: { size: 12.5, color: look.soft } }, hovermode: "x unified", hoverlabel: { bgcolor: look.card, bordercolor: look.grid, font: { color: look.text } },
      xaxis: { ...axis, range: this.span.map((at) => new Date(at)), type: "date", tickformat: "%H:%M", nticks: 7, showgrid: false, hoverformat: "%H:%M:%S" },
      yaxis: { ...axis, rangemode: "tozero", ticksuffix: chart.unit, nticks: 5, ...(chart.log && positive ? { type: "log", dtick: 1, exponentformat: "none" } : {}), ...(chart.range ? { range: [lowest(traces), 1.005], tickformat: ".0%" } : {}), ...(positive || chart.range ? {} : { range: [0, 1] }) },
    }, { displayModeBar: false, responsive: false });
  }
}

function push(columns, point, gone) {
  for (const [name, values] of Object.entries(columns)) values.push(point[name] ?? null);
  while (columns.at.length > 1500 || columns.at[0] < gone) for (const values of new Set(Object.values(columns))) values.shift();
}

/** Where an axis of shares begins: near enough to see a difference, never hiding how large it is. */
function lowest(traces) {
  const least = Math.min(1, ...traces.flatMap((trace) => trace.y.filter((value) => value !== null)));
  return least > 0.9 ? 0.85 : least > 0.5 ? 0.45 : -0.02;
}

function style() {
  const of = getComputedStyle(document.documentElement), value = (name) => of.getPropertyValue(name).trim();
  return { series: [1, 2, 3, 4].map((n) => value(`--series-${n}`)), grid: value("--line"), soft: value("--soft"), text: value("--text"), card: value("--card"), font: getComputedStyle(document.body).fontFamily };
}
