// The paper: it takes strokes by mouse, finger or pen, and shows ink and the symbols that were read.

import { makeSvg, the } from "./common.js";

const NEAR = 9; // reach of the eraser in pixels
const WIDTH = 2.6; // of a line without pressure
const PEN_RESTS = 700; // milliseconds after the pen in which touch is a resting hand
export const UNSURE = 0.7;

export class Paper {
  #store;
  #svg = the("paper");
  #ink = makeSvg("g");
  #found = makeSvg("g", { "aria-hidden": "true" });
  #live = null; // {pointer, points, line} of the current stroke
  #penAt = -Infinity;
  erasing = false;

  constructor(store) {
    this.#store = store;
    this.#svg.append(this.#ink, this.#found);
    const on = (name, what) => this.#svg.addEventListener(name, what);
    on("pointerdown", (event) => this.#down(event));
    on("pointermove", (event) => this.#move(event));
    on("pointerup", (event) => this.#up(event));
    on("pointercancel", () => this.#drop());
    new ResizeObserver(() => this.#fit()).observe(this.#svg);
    store.addEventListener("change", () => this.draw());
  }

  /** The current [width, height] of the page. */
  get size() {
    return [this.#svg.clientWidth, this.#svg.clientHeight];
  }

  /** Redraw all ink. */
  draw() {
    this.#ink.replaceChildren(...this.#store.parts.flatMap((part) => part.strokes.map(line)));
    the("hint").hidden = !this.#store.isEmpty;
    this.#fit();
  }

  /** Show boxes and labels of the symbols that were read. */
  show(symbols, chosen) {
    this.#found.replaceChildren(...symbols.flatMap((symbol) => marks(symbol, symbol.number === chosen)));
  }

  /** Scale the page so that ink from a larger page fits. */
  #fit() {
    const [width, height] = this.size;
    if (!width || !height) return; // the page is hidden
    const points = this.#store.parts.flatMap((part) => part.strokes.flat());
    const right = points.reduce((most, [x]) => Math.max(most, x + 12), width);
    const bottom = points.reduce((most, [, y]) => Math.max(most, y + 24), height);
    const scale = Math.max(right / width, bottom / height);
    this.#svg.setAttribute("viewBox", `0 0 ${width * scale} ${height * scale}`);
  }

  #at(event) {
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.#svg.getScreenCTM().inverse());
    const pressure = event.pointerType === "pen" ? event.pressure : 0.5;
    return [round(x), round(y), round(pressure)];
  }

  #down(event) {
    if (event.pointerType === "pen") this.#penAt = event.timeStamp;
    const resting = event.pointerType === "touch" && event.timeStamp - this.#penAt < PEN_RESTS;
    if (this.#live || resting || (event.button !== 0 && event.button !== 5)) return;
    event.preventDefault();
    this.#svg.setPointerCapture(event.pointerId);
    const erases = this.erasing || event.button === 5 || (event.buttons & 32) !== 0;
    this.#live = { pointer: event.pointerId, erases, points: [this.#at(event)], line: null };
    if (erases) this.#rub(this.#live.points[0]);
    else this.#ink.append((this.#live.line = line(this.#live.points)));
  }

  #move(event) {
    if (event.pointerType === "pen") this.#penAt = event.timeStamp;
    const live = this.#live;
    if (!live || event.pointerId !== live.pointer) return;
    const events = event.getCoalescedEvents?.() ?? [];
    for (const one of events.length ? events : [event]) {
      const point = this.#at(one);
      const [x, y] = live.points.at(-1);
      if (Math.hypot(point[0] - x, point[1] - y) < 0.5) continue;
      live.points.push(point);
      if (live.erases) this.#rub(point);
    }
    if (live.erases) return;
    const drawn = line(live.points);
    live.line.replaceWith(drawn);
    live.line = drawn;
  }

  #up(event) {
    const live = this.#live;
    if (!live || event.pointerId !== live.pointer) return;
    this.#live = null;
    if (!live.erases) this.#store.write(live.points);
  }

  #drop() {
    this.#live?.line?.remove();
    this.#live = null;
  }

  #rub([x, y]) {
    const hit = this.#store.parts.filter((part) => part.strokes.some((stroke) => reaches(stroke, x, y)));
    this.#store.erase(hit.map((part) => part.id));
  }
}

const round = (value) => Math.round(value * 100) / 100;

/** Return a stroke as one line, or with pressure as one line for each piece. */
function line(points) {
  const pressures = points.map((point) => point[2] ?? 0.5);
  if (pressures.every((pressure) => Math.abs(pressure - 0.5) < 1e-6)) return path(points, WIDTH);
  const pieces = points.slice(1).map((point, place) => path([points[place], point], WIDTH * (0.4 + 1.2 * pressures[place + 1])));
  return makeSvg("g", {}, ...(pieces.length ? pieces : [path(points, WIDTH)]));
}

function path(points, width) {
  const [first, ...rest] = points;
  const way = rest.length ? rest : [first]; // a dot is a line of no length with round ends
  const d = `M${first[0]} ${first[1]}` + way.map(([x, y]) => `L${x} ${y}`).join("");
  return makeSvg("path", { class: "stroke", d, "stroke-width": width.toFixed(2) });
}

/** Return the box of a symbol with its label above. */
function marks(symbol, chosen) {
  const [left, top, right, bottom] = symbol.box;
  const said = symbol.said ? " said" : symbol.label_confidence < UNSURE ? " unsure" : "";
  const box = makeSvg("rect", {
    class: `box${said}${chosen ? " chosen" : ""}`,
    x: left - 4, y: top - 4, width: right - left + 8, height: bottom - top + 8, rx: 4,
  });
  const name = makeSvg("text", { class: `named${said}`, x: (left + right) / 2, y: top - 8, text: symbol.label });
  return [box, name];
}

/** Return whether a point is near a stroke. */
function reaches(stroke, x, y) {
  return stroke.some((point, place) => distance(stroke[Math.max(0, place - 1)], point, x, y) < NEAR);
}

function distance([ax, ay], [bx, by], x, y) {
  const [dx, dy] = [bx - ax, by - ay];
  const along = Math.min(1, Math.max(0, ((x - ax) * dx + (y - ay) * dy) / (dx * dx + dy * dy || 1)));
  return Math.hypot(x - ax - along * dx, y - ay - along * dy);
}

/** Return the ink as a picture, black on white, that `aggrevated parse` can read. */
export async function asPicture(parts, scale = 2) {
  const points = parts.flatMap((part) => part.strokes.flat());
  const [left, top] = [0, 1].map((axis) => points.reduce((least, point) => Math.min(least, point[axis]), Infinity) - 20);
  const [right, bottom] = [0, 1].map((axis) => points.reduce((most, point) => Math.max(most, point[axis]), -Infinity) + 20);
  const canvas = new OffscreenCanvas(Math.ceil((right - left) * scale), Math.ceil((bottom - top) * scale));
  const context = canvas.getContext("2d");
  context.fillStyle = "white";
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.setTransform(scale, 0, 0, scale, -left * scale, -top * scale);
  Object.assign(context, { lineWidth: WIDTH, lineCap: "round", lineJoin: "round", strokeStyle: "black" });
  for (const stroke of parts.flatMap((part) => part.strokes)) {
    context.beginPath();
    context.moveTo(stroke[0][0], stroke[0][1]);
    for (const [x, y] of stroke.length > 1 ? stroke.slice(1) : stroke) context.lineTo(x, y);
    context.stroke();
  }
  return canvas.convertToBlob({ type: "image/png" });
}
