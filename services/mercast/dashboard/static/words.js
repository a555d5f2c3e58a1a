// Numbers as people read them, and elements made from them. Text is always text: names come from clients.

export const NONE = "–";

export function number(value, digits = 0) {
  if (value === null || value === undefined) return NONE;
  if (Math.abs(value) >= 1e6) return (value / 1e6).toFixed(2) + " M";
  if (Math.abs(value) >= 1e5) return (value / 1e3).toFixed(0) + " k";
  return value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}

export function rate(value) {
  if (value === null || value === undefined) return NONE;
  return number(value, value !== 0 && Math.abs(value) < 10 ? 1 : 0);
}

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  for (const unit of ["B", "kB", "MB", "GB"]) {
    if (Math.abs(value) < 1000 || unit === "GB") return `${value.toFixed(unit === "B" || value >= 100 ? 0 : 1)} ${unit}`;
    value /= 1000;
  }
}

export function micros(value) {
  if (value === null || value === undefined) return NONE;
  const size = Math.abs(value);
  if (size < 1000) return `${value.toFixed(0)} µs`;
  if (size < 1e6) return `${(value / 1000).toFixed(size < 1e4 ? 2 : size < 1e5 ? 1 : 0)} ms`;
  return `${(value / 1e6).toFixed(2)} s`;
}

export function share(value) {
  if (value === null || value === undefined) return NONE;
  const percent = value * 100;
  return `${(percent < 100 && percent > 99.99 ? 99.99 : percent).toFixed(percent === 100 ? 0 : 2)} %`;
}

export function seconds(value) {
  if (value === null || value === undefined) return NONE;
  return value < 10 ? `${value.toFixed(1)} s` : value < 120 ? `${value.toFixed(0)} s` : `${(value / 60).toFixed(0)} min`;
}

export function count(many, what) {
  return `${number(many)} ${what}${many === 1 ? "" : "s"}`;
}

export function clock(millis) {
  return new Date(millis).toLocaleTimeString("en-GB");
}

/** An element: make("p", {class: "note"}, "text", child). */
export function make(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

export function draw(name, attributes = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** Only what differs is touched: a page that changes nothing costs nothing. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function mark(element, name, value) {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
  } else if (element.getAttribute(name) !== String(value)) element.setAttribute(name, value);
}
