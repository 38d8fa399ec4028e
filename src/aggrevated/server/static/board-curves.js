// Figures: curves with bands over an axis, experts as lines; read by pointer, by keyboard and as a table.

import { make, makeSvg } from "./common.js";
import { curveOf } from "./board-model.js";
import { axes, known, round, scale, shown, sign, ticked } from "./scales.js";

const MARGIN = { left: 52, right: 14, top: 12, bottom: 40 };
const MANY = 12; // curves, from which on they are drawn thinner and without a list of their names
const TITLES = { episodes: "episodes", steps: "simulator steps (start, roll-ins, oracle)", queries: "oracle queries", seconds: "seconds" };
const SHAPES = [
  (x, y) => `M${x - 4},${y}a4,4 0 1,0 8,0a4,4 0 1,0 -8,0z`,
  (x, y) => `M${x - 3.5},${y - 3.5}h7v7h-7z`,
  (x, y) => `M${x},${y - 5}l4.6,8.4h-9.2z`,
  (x, y) => `M${x},${y - 5}l5,5l-5,5l-5,-5z`,
];
const LABEL = 90; // pixels that an expert's label has
const READ = 6; // curves whose values are said
const STEPS = 200; // of the slider

/** The sign of a curve, as lists show it. */
export function swatch({ colour, dash, shape }) {
  return sign(`c${colour} d${dash}`, makeSvg("path", { class: `mark c${colour}`, d: SHAPES[shape](18, 7) }));
}

/** One figure: the curves of one task. */
export class Figure {
  constructor(task) {
    this.task = task;
    this.at = 1; // where along the axis is read, from 0 to 1
    this.chart = makeSvg("svg", { class: "chart", role: "img" });
    this.slider = make("input", {
      type: "range", min: 0, max: STEPS, value: STEPS, "aria-label": `Read the curves of ${task} at`,
      oninput: () => this.moveTo(this.slider.value / STEPS),
    });
    this.where = make("span", { class: "muted" });
    this.readout = make("ul", { class: "readout" });
    this.note = make("p", { class: "muted" });
    this.numbers = make("details", { ontoggle: () => this.fillNumbers() }, make("summary", { text: "The same as a table" }));
    this.element = make("div", { class: "figure" }, make("h3", { text: task || "unknown task" }), this.chart,
      make("div", { class: "along" }, this.where, this.slider), this.readout, this.note, this.numbers);
    this.chart.addEventListener("pointermove", (event) => this.point(event));
    this.chart.addEventListener("pointerdown", (event) => this.point(event));
  }

  /** Draw curves: [{entry, style, thin, strong}], by what was chosen. */
  draw(curves, choice) {
    this.choice = choice;
    const all = curves.map((one) => ({ ...one, points: curveOf(one.entry, choice.axis, choice.log) }));
    this.curves = all.filter((one) => one.points.length);
    this.experts = expertsOf(curves.map((one) => one.entry));
    this.layOut();
    this.chart.replaceChildren(...this.axes(), ...this.bands(), ...this.lines(), ...this.expertLines());
    this.cursor = this.chart.appendChild(makeSvg("path", { class: "cursor" }));
    this.chart.classList.toggle("many", this.curves.length > MANY);
    this.chart.classList.toggle("dimmed", this.curves.some((one) => one.strong));
    this.chart.setAttribute("aria-label", this.inWords());
    this.note.textContent = noteOn(curves.map((one) => one.entry), this.experts);
    this.read();
    if (this.numbers.open) this.fillNumbers();
  }

  /** Where values are on the paper. */
  layOut() {
    const { clientWidth, clientHeight } = this.chart;
    this.width = clientWidth || 600;
    this.height = clientHeight || 300;
    this.chart.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    const xs = this.curves.flatMap((one) => [one.points[0].x, one.points.at(-1).x]);
    const ys = [...this.experts.map((one) => one.value)];
    for (const { points, strong } of this.curves) for (const { y, low, high, current } of points) {
      ys.push(y, low ?? y, high ?? y, this.isAlone && strong ? current ?? y : y);
    }
    const [lowest, highest] = range(ys);
    const room = (highest - lowest || Math.abs(highest) || 1) * 0.05;
    const log = this.choice.log && xs.length > 0;
    const across = log ? range(xs) : [0, Math.max(1e-9, ...xs)];
    this.x = scale(across, [MARGIN.left, this.width - MARGIN.right], log, this.width < 450 ? 4 : 7);
    this.y = scale([lowest - room, highest + room], [this.height - MARGIN.bottom, MARGIN.top], false, this.height < 280 ? 5 : 7);
  }

  get isAlone() {
    return this.curves.filter((one) => one.strong).length === 1;
  }

  axes() {
    return axes(this.x, this.y, { width: this.width, height: this.height, margin: MARGIN, title: TITLES[this.choice.axis] });
  }

  bands() {
    return this.curves.filter((one) => one.points.some((point) => known(point.low))).map((one) => {
      const there = one.points.filter((point) => known(point.low));
      const d = `${this.path(there, "high")}L${this.path([...there].reverse(), "low").slice(1)}Z`;
      return makeSvg("path", { class: `band c${one.style.colour}${one.strong ? " strong" : ""}`, d });
    });
  }

  lines() {
    return this.curves.flatMap(({ points, style, thin, strong, entry }) => {
      const kind = `${thin ? " thin" : ""}${strong ? " strong" : ""}`;
      const last = points.at(-1);
      const look = `curve c${style.colour} d${style.dash}${kind}`;
      const line = makeSvg("path", { class: look, d: this.path(points, "y"), "data-path": entry.path });
      const end = SHAPES[style.shape](round(this.x(last.x)), round(this.y(last.y)));
      const mark = makeSvg("path", { class: `mark c${style.colour}${strong ? " strong" : ""}`, d: end });
      const current = strong && this.isAlone && !entry.members
        ? [makeSvg("path", { class: `curve thin c${style.colour}`, d: this.path(points, "current") })] : [];
      return [...current, line, mark];
    });
  }

  path(points, name) {
    const there = points.filter((point) => known(point[name]));
    const places = there.map((point) => `${round(this.x(point.x))},${round(this.y(point[name]))}`);
    return places.length ? `M${places.join("L")}` : "";
  }

  expertLines() {
    const right = this.width - MARGIN.right;
    return this.experts.flatMap(({ value }, place) => [
      makeSvg("path", { class: "expert", d: `M${MARGIN.left},${round(this.y(value))}H${right}` }),
      ...(place < 2 ? [this.expertLabel(value, right)] : []),
    ]);
  }

  /** Above or below the line, where the fewest curves are near. */
  expertLabel(value, right) {
    const across = Math.max(0, right - MARGIN.left - LABEL);
    const places = [1, 0, 0.5].flatMap((share) => [-5, 14].map((below) => ({ start: MARGIN.left + share * across, below })));
    const crowded = places.map((place) => ({ ...place, near: this.near(value, place) }));
    const best = crowded.reduce((least, one) => (one.near < least.near ? one : least));
    const at = { x: best.start + LABEL - 4, y: round(this.y(value)) + best.below, "text-anchor": "end" };
    return makeSvg("text", { class: "expert-label", ...at, text: `expert ${shown(value)}` });
  }

  /** How many curves would be hidden by a label there. */
  near(value, { start, below }) {
    const [from, to] = below < 0 ? [-20, 3] : [-3, 20];
    return this.curves.filter((one) => [0.05, 0.35, 0.65, 0.95].some((share) => {
      const point = pointAt(one.points, this.x.invert(start + share * LABEL));
      const offset = point ? this.y(point.y) - this.y(value) : Infinity;
      return offset > from && offset < to;
    })).length;
  }

  /** Read where the pointer is. */
  point(event) {
    const box = this.chart.getBoundingClientRect();
    const inside = (event.clientX - box.left - MARGIN.left) / (box.width - MARGIN.left - MARGIN.right);
    this.slider.value = Math.round(Math.min(1, Math.max(0, inside)) * STEPS);
    this.moveTo(this.slider.value / STEPS);
  }

  moveTo(share) {
    this.at = share;
    this.read();
  }

  /** Say what the curves are at where it is read. */
  read() {
    const right = this.width - MARGIN.right;
    const x = this.x.invert(MARGIN.left + this.at * (right - MARGIN.left));
    this.cursor.setAttribute("d", this.at < 1 ? `M${round(this.x(x))},${MARGIN.top}V${this.height - MARGIN.bottom}` : "");
    const words = this.at < 1 ? `At ${ticked(Number(x.toPrecision(3)))}` : "Newest";
    this.where.textContent = words;
    this.slider.setAttribute("aria-valuetext", `${words} ${this.choice.axis}`);
    const there = this.curves.map((one) => ({ ...one, point: pointAt(one.points, this.at < 1 ? x : Infinity) }));
    const read = there.filter((one) => one.point);
    read.sort((a, b) => Number(b.strong) - Number(a.strong) || b.point.y - a.point.y);
    const rest = read.length - READ;
    const more = rest > 0 ? [make("li", { class: "muted", text: `and ${rest} more` })] : [];
    this.readout.replaceChildren(...read.slice(0, READ).map(readLine), ...more);
  }

  /** The numbers of all curves at a few places, for whoever does not see them. */
  fillNumbers() {
    this.numbers.querySelector(".scroll")?.remove();
    if (!this.numbers.open || !this.curves.length) return;
    const places = this.x.ticks.filter((value) => value > 0).slice(-5);
    const heads = [...places.map(ticked), "Newest"].map((text) => make("th", { scope: "col", class: "number", text }));
    const rows = this.curves.map((curve) => numbersOf(curve, places));
    const caption = `Best return so far in ${this.task}, over ${this.choice.axis}`;
    const table = make("table", {}, make("caption", { class: "hidden-visually", text: caption }),
      make("thead", {}, make("tr", {}, make("th", { scope: "col", text: "Run" }), ...heads)), make("tbody", {}, ...rows));
    const region = { class: "scroll", tabindex: 0, role: "region", "aria-label": `Numbers of ${this.task}` };
    this.numbers.append(make("div", region, table));
  }

  inWords() {
    const [best] = [...this.curves].sort((a, b) => b.points.at(-1).y - a.points.at(-1).y);
    const first = best ? `; the best is ${best.entry.path} with ${shown(best.points.at(-1).y)}` : "";
    return `${this.task}: ${this.curves.length} curves of the best return so far over ${this.choice.axis}${first}`;
  }
}

function readLine({ entry, style, point }) {
  const between = known(point.low) ? ` (${shown(point.low)} to ${shown(point.high)})` : "";
  const trials = make("span", { class: "muted", text: point.trials ? ` of ${point.trials} trials` : "" });
  const label = make("span", { class: "label" }, entry.path, trials);
  return make("li", {}, swatch(style), label, make("b", { text: shown(point.y) + between }));
}

/** A row of numbers: the curve at these places, as far as it goes, and its newest. */
function numbersOf({ entry, points }, places) {
  const last = points.at(-1);
  const values = [...places.map((x) => (x > last.x ? null : pointAt(points, x)?.y)), last.y];
  const cells = values.map((value) => make("td", { class: "number", text: shown(value) }));
  return make("tr", {}, make("th", { scope: "row", text: entry.path }), ...cells);
}

/** The last point that is not beyond x. */
function pointAt(points, x) {
  let [from, to] = [0, points.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if (points[middle].x <= x) from = middle + 1;
    else to = middle;
  }
  return points[from - 1];
}

/** [{world, value}]: what is known of the experts of these entries, each world once. */
function expertsOf(entries) {
  const worlds = new Map();
  for (const { world, expert } of entries) {
    if (known(expert)) worlds.set(world, [...(worlds.get(world) || []), expert]);
  }
  return [...worlds].map(([world, values]) => ({ world, value: values.reduce((sum, one) => sum + one, 0) / values.length }));
}

function noteOn(entries, experts) {
  const bands = entries.some((one) => one.members) ? "Bands are 95 % intervals of the interquartile mean over trials. " : "";
  const worlds = new Set(entries.map((one) => one.world));
  if (!experts.length) return `${bands}The expert's line is known once a run of this world has ended.`;
  const lent = entries.some((one) => one.lent) ? ", for runs under way that of others of the same world" : "";
  const some = experts.length < worlds.size ? " Of some worlds it is not known yet." : "";
  return `${bands}The expert's line is its return in the test${lent}.${some}`;
}

/** [least, most]; [0, 1] of nothing. */
function range(values) {
  let [low, high] = [Infinity, -Infinity];
  for (const value of values) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low <= high ? [low, high] : [0, 1];
}
