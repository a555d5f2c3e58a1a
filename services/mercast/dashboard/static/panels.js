// What is written: tiles, what is missing, the tables, one broker, the path of an event, and what the page costs.

import { NONE, bytes, clock, count, make, mark, micros, number, put, rate, seconds, share } from "./words.js";

const at = (id) => document.getElementById(id);

// -- tiles ---------------------------------------------------------------------------------------------------------

function tile(name, value, note = "", { bad = false, stale = false } = {}) {
  const box = at(`tile-${name}`), shown = box.querySelector("[data-value]");
  put(shown, value);
  mark(shown.closest("dd"), "data-empty", value === NONE ? 1 : null);
  put(box.querySelector("[data-note]"), note);
  mark(box, "data-bad", bad ? 1 : null);
  mark(box, "data-stale", stale ? 1 : null);
}

export function tiles(pulse, states) {
  const { load, figures, drops } = pulse;
  const dead = states.filter((state) => state === "dead").length, unknown = states.filter((state) => state === "unknown").length;
  const up = states.length - dead - unknown;
  tile("brokers", states.length ? `${up} of ${states.length}` : NONE, dead ? `${dead} dead` : unknown ? `${unknown} not known` : states.length ? "none dead" : "", { bad: dead > 0 });
  tile("published", rate(load?.published));
  tile("delivered", rate(load?.delivered), load ? `${rate(load.forwarded)}/s between brokers` : "");
  const worst = Object.entries(drops ?? {}).sort((one, other) => other[1] - one[1])[0];
  tile("dropped", rate(load?.dropped), worst ? worst[0] : load ? "nothing dropped" : "", { bad: Boolean(load?.dropped) });
  windowed(figures, pulse.age.figures);
}

function windowed(figures, age) {
  const stale = age !== null && age > 45;
  const when = figures ? (stale ? `${seconds(age)} old` : `window to ${clock(figures.end)}`) : "needs Spark";
  const latency = at("tile-latency");
  for (const name of ["p50", "p95", "p99"]) put(latency.querySelector(`[data-value=${name}]`), micros(figures?.[`latency_${name}_us`]));
  mark(latency.querySelector(".three"), "data-empty", figures?.latency_p50_us == null ? 1 : null);
  put(latency.querySelector("[data-note]"), figures && figures.clusters > 1 ? `highest of ${figures.clusters} clusters, ${when}` : when);
  mark(latency, "data-stale", stale ? 1 : null);
  const doubled = figures ? figures.doubled_receipts + figures.doubled_deliveries : null;
  tile("doubled", number(doubled), figures ? `of ${number(figures.receipts + figures.deliveries + doubled)} copies` : when, { bad: figures?.doubled_deliveries > 0, stale });
  tile("accuracy", share(figures?.accuracy), figures ? `${number(figures.receipts)} receipts` : when, { stale });
  tile("completeness", share(figures?.completeness), figures ? `${number(figures.entries_made)} entries` : when, { stale });
}

// -- what is missing, and what it costs -----------------------------------------------------------------------------

let told = "";
export function missing(list) {
  const now = JSON.stringify(list);
  if (now === told) return;
  told = now;
  at("missing").hidden = !list.length;
  at("missing").replaceChildren(...list.map(({ what, why, commands }) => make("div", {},
    make("p", {}, make("strong", {}, `Not there: ${what[0].toLowerCase()}${what.slice(1)}. `), why),
    make("ul", { "aria-label": "Commands that start it" }, ...commands.map((command) => make("li", {}, make("code", {}, command)))))));
}

const SAYS = { there: "there", empty: "nothing comes", away: "does not answer", off: "not asked for" };

export function footer(pulse, received, drawing) {
  const list = at("sources");
  const lines = pulse.sources.map(([name, state, what]) => [name, state, SAYS[state], what]);
  const now = JSON.stringify(lines);
  if (list.dataset.told !== now) {
    list.dataset.told = now;
    list.replaceChildren(...lines.map(([name, state, says, what]) => make("li", { title: what }, name, make("span", { class: "tag", "data-state": state }, says))));
  }
  const { cost, age } = pulse;
  const parts = [`this page: ${bytes(received)}/s, ${drawing.toFixed(0)} ms/s of drawing`, `server: ${(cost.cpu * 100).toFixed(1)} % CPU, ${bytes(cost.rss)}, ${count(cost.pages, "page")}, reads ${bytes(cost.read)}/s`, `age: brokers ${seconds(age.brokers)}, windows ${seconds(age.figures)}`];
  if (cost.skipped) parts.push(`${number(cost.skipped)} tap messages skipped to keep up`);
  if (cost.unreadable) parts.push(`${number(cost.unreadable)} unreadable`);
  put(at("cost"), parts.join("   ·   "));
}

// -- the table of brokers --------------------------------------------------------------------------------------------

export class Table {
  constructor(body, choose) {
    this.body = body;
    this.rows = new Map();
    body.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) choose(Number(button.dataset.id));
    });
  }

  shape(brokers) {
    const before = this.rows;
    this.rows = new Map(brokers.map(([id, cluster, strategy, edge]) => {
      const row = before.get(id) ?? this.row(id);
      put(row.cells[2], cluster + (edge ? " · edge" : ""));
      Object.assign(row.element.dataset, { cluster, strategy });
      return [id, row];
    }));
    const wanted = [...this.rows.values()].map((row) => row.element);
    if (wanted.length !== this.body.children.length || wanted.some((element, place) => element !== this.body.children[place])) this.body.replaceChildren(...wanted);
  }

  row(id) {
    const element = make("tr"), cells = Array.from({ length: 12 }, (_, place) => make("td", place > 2 ? { class: "n" } : {}));
    cells[0].append(make("button", { type: "button", "data-id": id, "aria-label": `Broker ${id}: neighbours and tables` }, String(id)));
    cells[1].append(make("span", { class: "tag" }));
    element.append(...cells);
    return { element, cells };
  }

  pulse(brokers, fits) {
    for (const [id, { element, cells }] of this.rows) {
      const [state, silent, published, delivered, forwarded, out, dropped, cpu, clients, subscriptions, queued, , ready] = brokers[id] ?? ["unknown", null];
      element.hidden = !fits(element.dataset);
      mark(element, "data-state", state);
      const tag = cells[1].firstChild;
      mark(tag, "data-state", state);
      put(tag, state === "dead" ? (silent === null ? "dead" : `dead, ${seconds(silent)}`) : state === "unknown" ? "not known" : ready ? `up, ${ready}` : "up");
      [rate(published), rate(delivered), rate(forwarded), out == null ? NONE : `${bytes(out)}/s`, rate(dropped), cpu == null ? NONE : `${(cpu * 100).toFixed(0)} %`, number(clients), number(subscriptions), bytes(queued)].forEach((text, place) => put(cells[place + 3], text));
    }
  }

  show(id) {
    for (const [one, { element }] of this.rows) mark(element, "data-chosen", one === id ? 1 : null);
  }
}

// -- one broker --------------------------------------------------------------------------------------------------------

const HELD = { clients: "clients", subscriptions: "subscriptions", advertisements: "advertisements", types: "types", queued_bytes: "queued", loop_lag_us: "loop lag", clock_offset_us: "clocks differ", tap_lost: "tap rows lost" };
const AS = { queued_bytes: bytes, loop_lag_us: micros, clock_offset_us: micros };
const BY = { taps: "its taps", admin: "its admin port", others: "other brokers" };

function facts(pairs) {
  return make("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== null && value !== undefined).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, String(value)))));
}

export function broker(one) {
  put(at("broker-title"), `Broker ${one.id}`);
  const state = make("span", { class: "tag", "data-state": one.state }, one.state === "unknown" ? "not known" : one.state);
  const what = make("p", { class: "note" }, state, ` ${one.cluster}, ${one.strategy}${one.edge ? ", edge" : ""}; known by ${BY[one.by] ?? "control rows"}${one.state === "dead" && one.silent !== null ? `, last heard ${seconds(one.silent)} ago` : ""}${one.ready ? `; ${one.ready}` : ""}`);
  const flow = [["published", rate(one.rates.published)], ["delivered", rate(one.rates.delivered)], ["forwarded", rate(one.rates.forwarded)], ["dropped", rate(one.rates.dropped)]].map(([name, value]) => [`${name}/s`, value]);
  const held = { ...one.held, ...one.tables?.counts };
  const sizes = Object.entries(HELD).map(([name, title]) => [title, held[name] == null ? null : (AS[name] ?? number)(held[name])]);
  const tables = Object.entries(one.tables?.tables ?? {}).map(([name, many]) => [name, number(many)]);
  const window = one.figures ? [["p99 here", micros(one.figures.latency_p99_us)], ["accuracy", share(one.figures.accuracy)], ["duplicates", number(one.figures.doubled_receipts + one.figures.doubled_deliveries)]] : [];
  const lacking = one.tables || one.state === "dead" ? [] : [make("p", { class: "note" }, "Sizes of routing tables come from its admin port: mercast dashboard --admin HOST:PORT")];
  at("broker-body").replaceChildren(what, make("h3", {}, "Now"), facts([...flow, ...window]), make("h3", {}, "Tables"), facts([...tables, ...sizes]), ...lacking,
    make("h3", {}, `Neighbours (${one.neighbours.length})`), make("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Neighbours" }, neighbours(one.neighbours)));
}

function neighbours(list) {
  const head = ["Broker", "Link", "In/s", "Out/s", "Cost", "RTT", "Queued"].map((title, place) => make("th", { scope: "col", class: place > 1 ? "n" : null }, title));
  const lines = list.map((link) => make("tr", { "data-state": link.state },
    make("td", {}, make("button", { type: "button", "data-id": link.id, "aria-label": `Broker ${link.id}` }, String(link.id))), make("td", {}, make("span", { class: "tag", "data-state": link.state }, link.state)),
    ...[rate(link.in), rate(link.out), number(link.cost), link.rtt_ms == null ? NONE : `${link.rtt_ms.toFixed(2)} ms`, bytes(link.queued_bytes)].map((text) => make("td", { class: "n" }, text))));
  return make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...lines));
}

export function nobody() {
  put(at("broker-title"), "Broker");
  at("broker-body").replaceChildren(make("p", { class: "note" }, "Choose a broker in the overlay or in the table below to see its neighbours and tables."));
}

// -- the path of an event ----------------------------------------------------------------------------------------------

export function path(found) {
  const { event, rows, where } = found;
  if (!rows.length) {
    at("event-body").replaceChildren(make("p", { class: "note" }, `No row of event ${event.join(".")} in ${where}.`));
    return { brokers: [], links: [] };
  }
  const began = rows[0].time;
  const lines = rows.map((row) => make("li", { "data-kind": row.kind }, make("span", { class: "what" }, make("strong", {}, `${row.broker} `), says(row)), make("time", {}, `${row.at >= began ? "+" : "−"}${micros(Math.abs(row.at - began))}`)));
  const type = rows.find((row) => row.type)?.type;
  at("event-body").replaceChildren(make("p", { class: "note" }, `${event.join(".")}${type ? ` of type ${type}` : ""}, published ${clock(began / 1000)}; from ${where}`), make("ol", { class: "path", tabindex: 0, "aria-label": "Path" }, ...lines));
  const came = rows.filter((row) => row.kind === "received");
  return { brokers: [...new Set(rows.map((row) => row.broker))], links: came.map((row) => [row.neighbour, row.broker]) };
}

function says(row) {
  if (row.kind === "published") return `published, ${count(row.destinations, "other broker")}, ${count(row.matches, "client")} here`;
  if (row.kind === "received" && row.copy === 0) return "carried on, after it had waited";
  if (row.kind === "received") return `from broker ${row.neighbour}, ${count(row.hops, "hop")}${row.copy > 1 ? ", not the first copy" : ""}${row.interested ? "" : ", passes by"}`;
  if (row.kind === "delivered") return `delivered${row.client ? ` to ${row.client}` : ""}`;
  return `dropped: ${row.why}`;
}

// -- windows as a table --------------------------------------------------------------------------------------------------

const COLUMNS = [["end", "Window to", clock], ["latency_p50_us", "p50", micros], ["latency_p95_us", "p95", micros], ["latency_p99_us", "p99", micros], ["doubled_receipts", "Doubled receipts", number], ["doubled_deliveries", "Doubled deliveries", number], ["accuracy", "Accuracy", share], ["completeness", "Completeness", share], ["all_published", "Published", number], ["all_delivered", "Delivered", number], ["dropped", "Dropped", number]];

export function windows(figures) {
  const table = at("windows").querySelector("table");
  table.tHead.replaceChildren(make("tr", {}, ...COLUMNS.map(([, title], place) => make("th", { scope: "col", class: place ? "n" : null }, title))));
  const last = figures.end.length, first = Math.max(0, last - 24);
  table.tBodies[0].replaceChildren(...Array.from({ length: last - first }, (_, n) => last - 1 - n).map((place) => make("tr", {}, ...COLUMNS.map(([name, , as], column) => make("td", { class: column ? "n" : null }, as(figures[name][place]))))));
}
