// Puts the parts together: what comes in the stream goes to the drawing, the tiles, the tables and the charts.

import { Charts } from "./charts.js";
import { Overlay } from "./overlay.js";
import * as panels from "./panels.js";
import { Stream } from "./stream.js";
import { count, make, mark, put, seconds } from "./words.js";

const at = (id) => document.getElementById(id);
const choices = { cluster: at("cluster"), strategy: at("strategy"), minutes: at("minutes") };
const REDRAWN = { 5: 1, 15: 3, 60: 10, 120: 20 }; // seconds: what moves by less than a pixel is not drawn

let chosen = null, shape = null, beats = 0, spent = 0, drawing = null, asked = 0, last = null, dead = null;

const overlay = new Overlay(at("overlay"), choose);
const table = new panels.Table(at("brokers").querySelector("tbody"), choose);
const charts = new Charts();
const stream = new Stream({ overlay: timed(takeOverlay), pulse: timed(takePulse), state: showState });

function timed(work) {
  return (data) => {
    const began = performance.now();
    work(data);
    spent += performance.now() - began;
  };
}

// -- the stream ----------------------------------------------------------------------------------------------------

function takeOverlay(told) {
  shape = told;
  overlay.shape(told);
  table.shape(told.brokers);
  options("cluster", [...new Set(told.choices.map(([cluster]) => cluster))]);
  options("strategy", [...new Set(told.choices.map(([, strategy]) => strategy))]);
  at("nobody").hidden = told.brokers.length > 0;
}

function takePulse(pulse) {
  last = pulse;
  beats += 1;
  if (document.hidden && beats % 5) return;
  const fits = ({ cluster, strategy }) => (!choices.cluster.value || cluster === choices.cluster.value) && (!choices.strategy.value || strategy === choices.strategy.value);
  const mine = (shape?.brokers ?? []).filter(([, cluster, strategy]) => fits({ cluster, strategy }));
  const states = mine.map(([id]) => pulse.brokers[id]?.[0] ?? "unknown");
  overlay.pulse(pulse.brokers, pulse.links);
  table.pulse(pulse.brokers, fits);
  panels.tiles(pulse, states);
  panels.missing(pulse.missing);
  const up = (shape?.links ?? []).filter(([, , state]) => state === "up").length;
  put(at("overlay-sum"), shape?.brokers.length ? `${count(shape.brokers.length, "broker")}, ${count(up, "link")} up` : "");
  if (charts.add(pulse.load, pulse.figures, Number(choices.minutes.value), pulse.at) && pulse.at - asked > 5000) askHistory();
  if (beats % REDRAWN[choices.minutes.value] === 0) charts.draw();
  if (at("windows").open && charts.history) panels.windows(charts.history.figures);
  if (chosen !== null && beats % 2 === 0) showBroker();
  speak(mine, pulse);
  spent += charts.spent;
  drawing = drawing === null ? spent : drawing + (spent - drawing) / 10;
  spent = charts.spent = 0;
  panels.footer(pulse, stream.rate, drawing);
}

/** What somebody who does not see the page should hear of: brokers that die and come back. */
function speak(brokers, pulse) {
  const now = new Set(brokers.map(([id]) => id).filter((id) => pulse.brokers[id]?.[0] === "dead"));
  if (dead !== null) {
    const died = [...now].filter((id) => !dead.has(id)), back = [...dead].filter((id) => !now.has(id) && pulse.brokers[id]?.[0] === "up");
    if (died.length) put(at("spoken"), `Dead: broker ${died.slice(0, 9).join(", ")}`);
    else if (back.length) put(at("spoken"), `Back: broker ${back.slice(0, 9).join(", ")}`);
  }
  dead = now;
  document.title = now.size ? `${now.size} dead – mercast` : "mercast";
}

function showState(state, age) {
  const late = state === "live" && last?.age.brokers > 5;
  mark(at("live"), "data-state", late ? "late" : state);
  put(at("live-text"), state === "wait" ? "connecting" : state === "lost" ? `no word from the server for ${seconds(age)}, trying again` : late ? `live, nothing heard of brokers for ${seconds(last.age.brokers)}` : "live");
  if (state === "live" && at("live").dataset.was === "lost") askHistory();
  at("live").dataset.was = state;
}

// -- choices ---------------------------------------------------------------------------------------------------------

function options(name, values) {
  const select = choices[name], now = select.value;
  const wanted = ["", ...values.filter(Boolean).sort()];
  if (wanted.join("\n") === [...select.options].map((one) => one.value).join("\n")) return;
  select.replaceChildren(...wanted.map((value) => make("option", { value }, value || "all")));
  select.value = wanted.includes(now) ? now : "";
}

function query() {
  return new URLSearchParams({ cluster: choices.cluster.value, strategy: choices.strategy.value });
}

async function askHistory() {
  asked = last?.at ?? 0;
  try {
    const minutes = Number(choices.minutes.value), answer = await fetch(`/api/history?${query()}&minutes=${minutes}`);
    if (answer.ok) charts.take(await answer.json(), minutes, last?.at ?? Date.now());
  } catch { /* the stream says that the server is away, and asks again when it is back */ }
}

for (const name of ["cluster", "strategy"]) {
  choices[name].addEventListener("change", () => {
    overlay.choice(choices.cluster.value, choices.strategy.value);
    stream.open(query());
    askHistory();
  });
}
choices.minutes.addEventListener("change", askHistory);

// -- one broker, one event -----------------------------------------------------------------------------------------------

function choose(id) {
  chosen = id;
  overlay.show(id);
  table.show(id);
  at("broker-close").hidden = false;
  showBroker().then(() => at("broker-title").focus({ preventScroll: innerWidth > 980 }));
}

async function showBroker() {
  const id = chosen, held = at("broker-body").contains(document.activeElement) ? document.activeElement.dataset.id : null;
  try {
    const answer = await fetch(`/api/broker/${id}`);
    if (id !== chosen) return;
    if (answer.ok) panels.broker(await answer.json());
    if (held) at("broker-body").querySelector(`[data-id="${held}"]`)?.focus();
  } catch { /* as above */ }
}

at("broker-body").addEventListener("click", (event) => {
  const button = event.target.closest("button[data-id]");
  if (button) choose(Number(button.dataset.id));
});
at("broker-close").addEventListener("click", () => {
  chosen = null;
  overlay.show(null);
  table.show(null);
  at("broker-close").hidden = true;
  panels.nobody();
});

async function showEvent(id) {
  at("event-body").replaceChildren(make("p", { class: "note" }, "looking …"));
  try {
    const answer = await fetch(`/api/event?id=${encodeURIComponent(id)}`);
    if (!answer.ok) {
      at("event-body").replaceChildren(make("p", { class: "note" }, await answer.text()));
      return;
    }
    const found = await answer.json(), way = panels.path(found);
    at("event-id").value = found.event.join(".");
    overlay.way(way.brokers, way.links);
  } catch {
    at("event-body").replaceChildren(make("p", { class: "note" }, "The server does not answer."));
  }
}
at("event-form").addEventListener("submit", (event) => {
  event.preventDefault();
  showEvent(at("event-id").value);
});
at("event-latest").addEventListener("click", () => showEvent("latest"));

// -- colours -----------------------------------------------------------------------------------------------------------

const THEMES = ["auto", "light", "dark"], SAID = { auto: "as the system has them", light: "light", dark: "dark" };
function theme(name) {
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  put(at("theme"), name);
  at("theme").setAttribute("aria-label", `Colours: ${SAID[name]}`);
  charts.themed();
}
at("theme").addEventListener("click", () => {
  const name = THEMES[(THEMES.indexOf(at("theme").textContent) + 1) % THEMES.length];
  try { localStorage.setItem("mercast-theme", name); } catch { /* then for this visit */ }
  theme(name);
});
theme(document.documentElement.dataset.theme ?? "auto");
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => charts.themed());
document.addEventListener("visibilitychange", () => { if (!document.hidden && last) { takePulse(last); charts.draw(); } });

stream.open(query());
askHistory();
charts.load();
