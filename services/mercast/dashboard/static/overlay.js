// The overlay as a drawing: clusters, links as wide as their rates, brokers that can be chosen by mouse and keyboard.

import { draw, mark, put, rate } from "./words.js";

const SIDE = 1000, LABELLED = 60; // links whose rates are written beside them, at most

export class Overlay {
  constructor(svg, choose) {
    this.svg = svg;
    this.choose = choose;
    this.nodes = new Map();
    this.links = [];
    this.chosen = null;
    this.path = { brokers: new Set(), links: new Set() };
    for (const name of ["clusters", "lines", "labels", "brokers"]) this[`${name}Layer`] = this.svg.appendChild(draw("g"));
    svg.addEventListener("click", (event) => {
      const node = event.target.closest(".node");
      if (node) choose(Number(node.dataset.id));
    });
    svg.addEventListener("keydown", (event) => this.key(event));
  }

  /** Once, when brokers, links or places have changed. */
  shape(told) {
    this.told = told;
    this.places = new Map(told.brokers.map(([id, , , , x, y]) => [id, [x * SIDE, y * SIDE]]));
    this.radius = Math.max(9, Math.min(26, 150 / Math.sqrt(Math.max(told.brokers.length, 1)) * (told.clusters.length > 1 ? 0.8 : 1)));
    this.widest = Math.max(2.5, Math.min(9, this.radius * 12 / Math.max(12, told.links.length / Math.max(told.brokers.length, 1) * 8)));
    this.drawClusters();
    this.drawLinks();
    this.drawBrokers();
    this.dim();
  }

  drawClusters() {
    const several = this.told.clusters.length > 1;
    this.clustersLayer.replaceChildren(...(several ? this.told.clusters : []).map(([name, x, y, r]) => {
      const group = draw("g", { class: "cluster" });
      group.dataset.cluster = name;
      group.append(draw("circle", { cx: x * SIDE, cy: y * SIDE, r: r * SIDE }));
      const text = draw("text", { x: x * SIDE, y: (y - r) * SIDE - 10 });
      text.textContent = name;
      group.append(text);
      return group;
    }));
  }

  drawLinks() {
    this.links = this.told.links.map(([one, other, state]) => {
      const [x1, y1] = this.places.get(one), [x2, y2] = this.places.get(other);
      const line = draw("line", { class: "link", x1, y1, x2, y2, "stroke-width": 1.5, "data-state": state });
      const title = line.appendChild(draw("title"));
      const label = draw("text", { class: "rate", x: (x1 + x2) / 2, y: (y1 + y2) / 2 });
      return { one, other, state, line, title, label };
    });
    this.linesLayer.replaceChildren(...this.links.map((link) => link.line));
    this.labelsLayer.replaceChildren(...(this.links.length <= LABELLED ? this.links.map((link) => link.label) : []));
  }

  drawBrokers() {
    const held = this.svg.contains(document.activeElement) ? document.activeElement.dataset.id : null;
    const first = this.told.brokers[0]?.[0];
    this.nodes = new Map(this.told.brokers.map(([id, cluster, strategy, edge, x, y]) => {
      const node = draw("g", { class: "node", transform: `translate(${x * SIDE} ${y * SIDE})`, role: "button", tabindex: id === (this.chosen ?? first) ? 0 : -1 });
      Object.assign(node.dataset, { id, cluster, strategy, edge: edge ? 1 : 0 });
      node.append(draw("circle", { class: "ring", r: this.radius + 6 }), draw("circle", { r: this.radius }));
      const text = draw("text", { "font-size": Math.max(10, this.radius * 0.9) });
      text.textContent = id;
      node.append(text);
      return [id, node];
    }));
    if (this.chosen !== null && !this.nodes.has(this.chosen)) this.nodes.get(first)?.setAttribute("tabindex", 0);
    this.brokersLayer.replaceChildren(...this.nodes.values());
    this.nodes.get(Number(held ?? NaN))?.focus();
    this.showChosen();
    this.showPath();
  }

  /** Every second. */
  pulse(brokers, rates) {
    let most = 0;
    for (const [into, out] of rates) most = Math.max(most, (into ?? 0) + (out ?? 0));
    this.links.forEach((link, place) => {
      const [into, out] = rates[place] ?? [null, null];
      const known = into !== null || out !== null, total = (into ?? 0) + (out ?? 0);
      const size = total ? Math.sqrt(total / most) : 0;
      mark(link.line, "stroke-width", (1.3 + size * this.widest).toFixed(1));
      mark(link.line, "stroke-opacity", total && link.state === "up" ? (0.3 + 0.5 * size).toFixed(2) : null);
      mark(link.line, "data-busy", total > 0 && link.state === "up" ? 1 : null);
      put(link.label, total ? rate(total) : "");
      put(link.title, `${link.one} – ${link.other}: ${link.state}${known ? `, ${rate(total)} events/s` : ""}`);
    });
    for (const [id, node] of this.nodes) {
      const state = brokers[id]?.[0] ?? "unknown";
      mark(node, "data-state", state);
      mark(node, "aria-label", `Broker ${id}, cluster ${node.dataset.cluster}, ${state}${node.dataset.edge === "1" ? ", edge" : ""}`);
    }
  }

  choice(cluster, strategy) {
    this.wanted = { cluster, strategy };
    this.dim();
  }

  dim() {
    const { cluster = "", strategy = "" } = this.wanted ?? {};
    const fits = (node) => node && (!cluster || node.dataset.cluster === cluster) && (!strategy || node.dataset.strategy === strategy);
    for (const node of this.nodes.values()) node.classList.toggle("dimmed", !fits(node));
    for (const link of this.links) {
      const out = !fits(this.nodes.get(link.one)) || !fits(this.nodes.get(link.other));
      link.line.classList.toggle("dimmed", out);
      link.label.classList.toggle("dimmed", out);
    }
  }

  show(id) {
    this.chosen = id;
    this.showChosen();
  }

  showChosen() {
    for (const [id, node] of this.nodes) mark(node, "data-chosen", id === this.chosen ? 1 : null);
  }

  /** The way of an event: brokers it came to, and links it took. */
  way(brokers, pairs) {
    this.path = { brokers: new Set(brokers), links: new Set(pairs.map(([one, other]) => `${Math.min(one, other)}-${Math.max(one, other)}`)) };
    this.showPath();
  }

  showPath() {
    for (const [id, node] of this.nodes) mark(node, "data-path", this.path.brokers.has(id) ? 1 : null);
    for (const link of this.links) mark(link.line, "data-path", this.path.links.has(`${link.one}-${link.other}`) ? 1 : null);
  }

  /** Arrows go to the nearest broker on that side; Enter chooses. One stop for the tab key. */
  key(event) {
    const from = event.target.closest(".node");
    if (!from) return;
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(Number(from.dataset.id));
      return;
    }
    const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!way) return;
    event.preventDefault();
    const [x, y] = this.places.get(Number(from.dataset.id));
    let best = null;
    for (const [id, [a, b]] of this.places) {
      const along = (a - x) * way[0] + (b - y) * way[1], aside = Math.abs((a - x) * way[1]) + Math.abs((b - y) * way[0]);
      if (along > 1 && (!best || along + 2 * aside < best.far)) best = { id, far: along + 2 * aside };
    }
    if (!best) return;
    from.setAttribute("tabindex", -1);
    const node = this.nodes.get(best.id);
    node.setAttribute("tabindex", 0);
    node.focus();
  }
}
