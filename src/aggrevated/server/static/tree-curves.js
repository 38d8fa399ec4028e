// Cumulative regret over episodes: what has happened strong, what will happen faint; beside it the bounds, as numbers, too.

import { make, makeSvg, the } from "./common.js";
import { axes, round, scale, sign } from "./scales.js";

const MARGIN = { left: 46, right: 48, top: 10, bottom: 38 };
const APART = 14; // pixels between names at the ends of curves
const FAR = 1.6; // a bound so many times above all curves is not drawn, unless the scale is logarithmic

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
      ...game.lines.map(boundOf),
    ];
    const rows = this.lines.map(rowOf);
    the("numbers").tBodies[0].replaceChildren(...rows);
    rows.forEach((one, place) => (one.cells[2].textContent = shown(this.lines[place].values.at(-1))));
    this.draw();
  }

  /** The axes and all curves, as they will be. */
  draw() {
    this.#scale();
    const { width, height } = this;
    this.earlier = this.drawn.map(({ kind }) => makeSvg("path", { class: `curve ${kind}` }));
    const learners = this.drawn.filter(({ name }) => name);
    const later = learners.map(({ kind, values }) => makeSvg("path", { class: `curve later ${kind}`, d: this.#d(values, this.end) }));
    this.cursor = makeSvg("path", { class: "cursor" });
    this.svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const around = axes(this.x, this.y, { width, height, margin: MARGIN, title: "episodes" });
    this.svg.replaceChildren(...around, ...later, ...this.earlier, this.cursor, ...this.#endings());
    const hidden = this.lines.filter((one) => !this.drawn.includes(one)).map(({ title }) => `“${title}”`);
    const beyond = `${hidden.join(", ")} is far above the figure; choose logarithmic to see it.`;
    the("beyond").textContent = hidden.length ? beyond : "";
    this.show(this.n ?? 0);
  }

  show(n) {
    this.n = n;
    this.drawn.forEach(({ name, values }, place) => this.earlier[place].setAttribute("d", this.#d(values, name ? n : this.end)));
    this.cursor.setAttribute("d", n ? `M${round(this.x(n))},${MARGIN.top}V${this.height - MARGIN.bottom}` : "");
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
    const high = Math.max(...this.drawn.map(({ values }) => values.at(-1))) * (this.log ? 1.3 : 1.05) || 1;
    const positive = this.drawn.flatMap(({ values }) => values.find((value) => value > 1e-9) ?? []);
    this.low = this.log ? Math.max(Math.min(...positive), high / 1e5) : 0;
    this.x = scale([0, this.end], [MARGIN.left, this.width - MARGIN.right], false, this.width < 450 ? 4 : 6);
    this.y = scale([this.low, high], [this.height - MARGIN.bottom, MARGIN.top], this.log, 6);
  }

  /** The line through the first n values; on a logarithmic scale from where it is above the paper's edge. */
  #d(values, n) {
    const places = values.slice(0, n).flatMap((value, place) =>
      (!this.log || value >= this.low ? [`${round(this.x(place + 1))},${round(this.y(value))}`] : []));
    return places.length ? `M${places.join("L")}` : "";
  }

  /** Names at the ends of the learners' curves, apart from each other. */
  #endings() {
    const learners = this.drawn.filter(({ name }) => name);
    const ends = learners.map(({ name, values }) => ({ name, y: this.y(Math.max(values.at(-1), this.low)) }));
    ends.sort((a, b) => b.y - a.y);
    ends.forEach((one, place) => place && (one.y = Math.min(one.y, ends[place - 1].y - APART)));
    const x = this.width - MARGIN.right + 8;
    return ends.map(({ name, y }) => makeSvg("text", { class: "ending", x, y: round(y + 4), text: name }));
  }

  #point(event) {
    const box = this.svg.getBoundingClientRect();
    const share = (event.clientX - box.left - MARGIN.left) / (this.width - MARGIN.left - MARGIN.right);
    this.dispatchEvent(new CustomEvent("point", { detail: Math.round(Math.min(1, Math.max(0, share)) * this.end) }));
  }
}

/** A bound, or what chance loses, as a line. */
function boundOf({ of, kind, title, values }) {
  return { kind: kind === "random" ? kind : `bound of-${of.toLowerCase()}`, atMost: kind === "at most", title, values };
}

/** A row of the table, without its numbers. */
function rowOf({ kind, title }) {
  const name = make("th", { scope: "row" }, make("span", {}, sign(kind), title));
  return make("tr", {}, name, make("td", { class: "number" }), make("td", { class: "number" }));
}

/** A regret, as the table has it. */
const shown = (value) => value.toLocaleString("en", { minimumFractionDigits: 2, maximumFractionDigits: 2 });
