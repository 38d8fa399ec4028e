// Cumulative regret over episodes: what has happened strong, what will happen faint; beside it the bounds, as numbers, too.

import { make, makeSvg, the } from "./common.js";

const MARGIN = { left: 46, right: 48, top: 10, bottom: 38 };
const APART = 14; // pixels between names at the ends of curves
const FAR = 1.6; // a bound so many times above all curves is not drawn, unless the scale is logarithmic

/** The sign of a line, as lists show it. */
export const swatch = (kind) => makeSvg("svg", { class: "swatch", viewBox: "0 0 36 14", "aria-hidden": "true" }, makeSvg("path", { class: `curve ${kind}`, d: "M1,7H35" }));

export class Curves extends EventTarget {
  constructor() {
    super();
    this.svg = the("chart");
    this.svg.addEventListener("pointerdown", (event) => this.#point(event));
    this.svg.addEventListener("pointermove", (event) => event.buttons && this.#point(event));
    the("log").addEventListener("change", () => this.draw());
  }

  begin(game) {
    [this.end, this.n] = [game.settings.episodes, 0];
    this.lines = [
      ...game.learners.map(({ name, regret }) => ({ kind: name.toLowerCase(), name, title: name, values: regret })),
      ...game.lines.map(({ of, kind, title, values }) => ({ kind: kind === "random" ? kind : `bound of-${of.toLowerCase()}`, atMost: kind === "at most", title, values })),
    ];
    const row = ({ kind, title }) => make("tr", {}, make("th", { scope: "row" }, make("span", {}, swatch(kind), title)), make("td", { class: "number" }), make("td", { class: "number" }));
    const rows = this.lines.map(row);
    the("numbers").tBodies[0].replaceChildren(...rows);
    rows.forEach((one, place) => (one.cells[2].textContent = shown(this.lines[place].values.at(-1))));
    this.draw();
  }

  /** The axes and all curves, as they will be. */
  draw() {
    this.#scale();
    const { width, height } = this;
    this.earlier = this.drawn.map(({ kind }) => makeSvg("path", { class: `curve ${kind}` }));
    const later = this.drawn.filter(({ name }) => name).map(({ kind, values }) => makeSvg("path", { class: `curve later ${kind}`, d: this.#d(values, this.end) }));
    this.cursor = makeSvg("path", { class: "cursor" });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    this.svg.replaceChildren(...this.#axes(), ...later, ...this.earlier, this.cursor, ...this.#endings());
    const hidden = this.lines.filter((one) => !this.drawn.includes(one)).map(({ title }) => `“${title}”`);
    the("beyond").textContent = hidden.length ? `${hidden.join(", ")} is far above the figure; choose logarithmic to see it.` : "";
    this.show(this.n ?? 0);
  }

  show(n) {
    this.n = n;
    this.earlier.forEach((path, place) => path.setAttribute("d", this.#d(this.drawn[place].values, this.drawn[place].name ? n : this.end)));
    this.cursor.setAttribute("d", n ? `M${round(this.#x(n))},${MARGIN.top}V${this.height - MARGIN.bottom}` : "");
    the("now").textContent = n ? `after ${n}` : "now";
    const rows = [...the("numbers").tBodies[0].rows];
    const values = this.lines.map((one) => (n ? one.values[n - 1] : 0));
    rows.forEach((row, place) => (row.cells[1].textContent = shown(values[place])));
    const words = this.lines.filter(({ name }) => name).map(({ name }, place) => `${name} ${shown(values[place])}`);
    this.svg.setAttribute("aria-label", `Cumulative regret after ${n} of ${this.end} episodes: ${words.join(", ")}`);
  }

  #scale() {
    [this.width, this.height] = [this.svg.clientWidth || 600, this.svg.clientHeight || 300];
    this.log = the("log").checked;
    const most = Math.max(...this.lines.filter((one) => !one.atMost).map(({ values }) => values.at(-1)));
    this.drawn = this.lines.filter((one) => this.log || !one.atMost || one.values.at(-1) <= FAR * most);
    this.high = Math.max(...this.drawn.map(({ values }) => values.at(-1))) * (this.log ? 1.3 : 1.05) || 1;
    const positive = this.drawn.flatMap(({ values }) => values.find((value) => value > 1e-9) ?? []);
    this.low = this.log ? Math.max(Math.min(...positive), this.high / 1e5) : 0;
  }

  #x(n) {
    return MARGIN.left + ((this.width - MARGIN.left - MARGIN.right) * n) / this.end;
  }

  #y(value) {
    const share = this.log ? Math.log(value / this.low) / Math.log(this.high / this.low) : value / this.high;
    return this.height - MARGIN.bottom - (this.height - MARGIN.bottom - MARGIN.top) * Math.max(0, share);
  }

  /** The line through the first n values; on a logarithmic scale from where it is above the paper's edge. */
  #d(values, n) {
    const points = values.slice(0, n).map((value, place) => [value, place + 1]).filter(([value]) => !this.log || value >= this.low);
    return points.map(([value, place], index) => `${index ? "L" : "M"}${round(this.#x(place))},${round(this.#y(value))}`).join("");
  }

  #axes() {
    const [bottom, right] = [this.height - MARGIN.bottom, this.width - MARGIN.right];
    const across = (this.log ? decades(this.low, this.high) : ticks(this.high)).flatMap((value) => [
      makeSvg("path", { class: "grid", d: `M${MARGIN.left},${round(this.#y(value))}H${right}` }),
      makeSvg("text", { x: MARGIN.left - 6, y: round(this.#y(value)) + 4, "text-anchor": "end", text: String(value) }),
    ]);
    const along = ticks(this.end, this.width < 450 ? 3 : 6).flatMap((value) => [
      makeSvg("path", { class: "axis", d: `M${round(this.#x(value))},${bottom}v4` }),
      makeSvg("text", { x: round(this.#x(value)), y: bottom + 17, "text-anchor": "middle", text: String(value) }),
    ]);
    const title = makeSvg("text", { x: (MARGIN.left + right) / 2, y: this.height - 5, "text-anchor": "middle", text: "episodes" });
    return [...across, ...along, makeSvg("path", { class: "axis", d: `M${MARGIN.left},${bottom}H${right}` }), title];
  }

  /** Names at the ends of the learners' curves, apart from each other. */
  #endings() {
    const ends = this.drawn.filter(({ name }) => name).map(({ name, values }) => ({ name, y: this.#y(Math.max(values.at(-1), this.low)) }));
    ends.sort((a, b) => b.y - a.y);
    ends.forEach((one, place) => place && (one.y = Math.min(one.y, ends[place - 1].y - APART)));
    return ends.map(({ name, y }) => makeSvg("text", { class: "ending", x: this.width - MARGIN.right + 8, y: round(y + 4), text: name }));
  }

  #point(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right);
    this.dispatchEvent(new CustomEvent("point", { detail: Math.round(Math.min(1, Math.max(0, share)) * this.end) }));
  }
}

/** 0 and round numbers up to the highest. */
function ticks(high, about = 5) {
  const size = 10 ** Math.floor(Math.log10(high / about));
  const step = [1, 2, 5, 10].map((many) => many * size).find((one) => high / one <= about + 0.5);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, place) => Number((place * step).toPrecision(6)));
}

function decades(low, high) {
  const first = Math.ceil(Math.log10(low));
  const found = Array.from({ length: Math.max(0, Math.floor(Math.log10(high)) - first + 1) }, (_, place) => Number((10 ** (first + place)).toPrecision(6)));
  return found.length > 1 ? found : [...found, Number(high.toPrecision(2))];
}

/** A regret, as the table has it. */
export const shown = (value) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const round = (value) => Math.round(value * 10) / 10;
