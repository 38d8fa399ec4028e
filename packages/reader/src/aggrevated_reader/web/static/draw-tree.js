// The tree: symbols in reading order with an arc from each head; drag a symbol onto its correct head.

import { makeSvg, the } from "./common.js";
import { UNSURE } from "./draw-paper.js";

const [CELL, LEFT, ROW, LEVEL, FOOT] = [46, 64, 46, 15, 8]; // pixels: width of a symbol, of ROOT, height of a symbol, of an arc, margin below
const ARC_UNSURE = 0.8;
const FAR = 6; // minimum distance of a drag in pixels

export class Tree extends EventTarget {
  #svg = the("tree");
  #symbols = [];
  #cells = [];
  #pull = null; // {number, x, y, line} while a symbol is dragged
  #top = 0;
  chosen = 0;

  /** Symbols with `number`, `label`, `head` …; `step`, if the parse is played, has `stack`, `buffer` and `heads`. */
  show(symbols, step = null) {
    this.#letGo(); // the dragged symbol is gone
    const focused = this.#cells.findIndex((cell) => cell === document.activeElement);
    this.#symbols = symbols;
    const heads = step ? step.heads : symbols.map((symbol) => symbol.head);
    const levels = levelsOf(heads);
    const whole = levelsOf(symbols.map((symbol) => symbol.head)); // a growing tree has room for all arcs
    this.#top = 22 + LEVEL * Math.max(1, ...levels.values(), ...whole.values());
    const [width, height] = [LEFT + CELL * symbols.length + 8, this.#top + ROW + FOOT];
    for (const [name, value] of Object.entries({ width, height, viewBox: `0 0 ${width} ${height}` })) this.#svg.setAttribute(name, value);
    const arcs = symbols.filter((_, place) => heads[place] >= 0).flatMap((symbol) => this.#arc(symbol, heads, levels, step));
    this.#cells = [this.#root(symbols, step), ...symbols.map((symbol) => this.#cell(symbol, step))];
    this.#svg.replaceChildren(...(symbols.length ? [...arcs, ...this.#cells] : []));
    if (focused > 0 && this.#cells[focused]) this.#cells[focused].focus({ preventScroll: true });
  }

  /** Select a symbol; 0 for none. */
  choose(number, focus = false) {
    this.chosen = number;
    this.#cells.forEach((cell, place) => {
      cell.classList.toggle("chosen", place === number && number > 0);
      if (place > 0) cell.setAttribute("tabindex", place === (number || 1) ? 0 : -1);
      if (place > 0) cell.setAttribute("aria-pressed", place === number);
    });
    if (focus) this.#cells[number]?.focus();
    this.dispatchEvent(new Event("choose"));
  }

  #x(number) {
    return number ? LEFT + CELL * (number - 0.5) : LEFT / 2 - 4;
  }

  #arc(symbol, heads, levels, step) {
    const head = heads[symbol.number - 1];
    const kind = step ? "" : symbol.saidHead ? " said" : symbol.arc_confidence < ARC_UNSURE ? " unsure" : "";
    const aside = head < symbol.number ? 5 : -5;
    const [from, to, y] = [this.#x(head) + aside, this.#x(symbol.number) - aside, this.#top - 2];
    const high = y - 8 - LEVEL * (levels.get(symbol.number) ?? 1);
    const bend = Math.min(14, Math.abs(to - from) / 2) * Math.sign(to - from);
    const d = `M${from} ${y}V${high + 8}Q${from} ${high} ${from + bend} ${high}H${to - bend}Q${to} ${high} ${to} ${high + 8}V${y - 5}`;
    return [
      makeSvg("path", { class: `arc${kind}`, d, "data-dependent": symbol.number, "data-head": head }),
      makeSvg("path", { class: `tip${kind}`, d: `M${to - 4} ${y - 7}h8l-4 7z` }),
    ];
  }

  #root(symbols, step) {
    const cell = makeSvg("g", { class: "symbol root", "data-number": 0 });
    cell.append(
      makeSvg("rect", { x: 4, y: this.#top, width: LEFT - 16, height: ROW - 2, rx: 5 }),
      makeSvg("text", { x: this.#x(0), y: this.#top + 27, text: "ROOT", class: "number" }),
    );
    cell.classList.toggle("stacked", Boolean(step?.stack.includes(0)));
    return cell;
  }

  #cell(symbol, step) {
    const x = this.#x(symbol.number);
    const kinds = ["symbol", symbol.saidLabel && "said", !symbol.saidLabel && symbol.label_confidence < UNSURE && "unsure"];
    if (step) kinds.push(step.stack.includes(symbol.number) && "stacked", step.buffer && symbol.number >= step.buffer && "waiting");
    const cell = makeSvg("g", {
      class: kinds.filter(Boolean).join(" "), role: "button", "data-number": symbol.number,
      tabindex: symbol.number === (this.chosen || 1) ? 0 : -1, "aria-label": `${symbol.label} ${symbol.number}`,
      "aria-description": inWords(symbol, this.#symbols),
      "aria-pressed": symbol.number === this.chosen,
      onpointerdown: (event) => this.#down(event, symbol.number),
      onpointermove: (event) => this.#move(event),
      onpointerup: (event) => this.#up(event),
      onpointercancel: () => this.#letGo(),
      onkeydown: (event) => this.#key(event, symbol.number),
    });
    cell.append(
      makeSvg("rect", { x: x - CELL / 2 + 2, y: this.#top, width: CELL - 4, height: ROW - 2, rx: 5 }),
      makeSvg("text", { class: "name", x, y: this.#top + 22, text: symbol.label, ...narrowed(symbol.label) }),
      " ", // between the parts that screen readers announce
      makeSvg("text", { class: "number", x, y: this.#top + 38, text: symbol.number }),
    );
    if (symbol.number === this.chosen) cell.classList.add("chosen");
    return cell;
  }

  #key(event, number) {
    const to = { ArrowLeft: number - 1, ArrowRight: number + 1, Home: 1, End: this.#symbols.length }[event.key];
    if (to >= 1 && to <= this.#symbols.length) this.choose(to, true);
    else if (event.key === "Enter" || event.key === " ") {
      this.choose(number);
      this.dispatchEvent(new Event("edit"));
    } else return;
    event.preventDefault();
  }

  #down(event, number) {
    if (event.button !== 0) return;
    event.preventDefault();
    this.#cells[number].setPointerCapture(event.pointerId);
    this.#pull = { number, x: event.clientX, y: event.clientY, line: null };
  }

  #move(event) {
    const pull = this.#pull;
    if (!pull || (!pull.line && Math.hypot(event.clientX - pull.x, event.clientY - pull.y) < FAR)) return;
    if (!pull.line) this.#svg.append((pull.line = makeSvg("path", { class: "arc pulled" })));
    const { x, y } = new DOMPoint(event.clientX, event.clientY).matrixTransform(this.#svg.getScreenCTM().inverse());
    pull.line.setAttribute("d", `M${this.#x(pull.number)} ${this.#top}L${x} ${y}`);
    this.#cells.forEach((cell, place) => cell.classList.toggle("over", place === this.#under(event) && place !== pull.number));
  }

  #up(event) {
    const pull = this.#pull;
    if (!pull) return;
    const under = this.#under(event);
    this.#letGo();
    if (!pull.line) this.choose(pull.number, true);
    else if (under !== null && under !== pull.number) {
      this.dispatchEvent(new CustomEvent("head", { detail: { number: pull.number, head: under } }));
    }
  }

  #letGo() {
    this.#pull?.line?.remove();
    this.#pull = null;
    this.#cells.forEach((cell) => cell.classList.remove("over"));
  }

  /** Return the number of the symbol under the pointer, or null. */
  #under(event) {
    const cell = document.elementsFromPoint(event.clientX, event.clientY).map((one) => one.closest?.(".symbol")).find(Boolean);
    return cell ? Number(cell.dataset.number) : null;
  }
}

/** Return a symbol's description for screen readers. */
export function inWords(symbol, symbols) {
  const head = symbol.head ? `${symbols[symbol.head - 1]?.label} ${symbol.head}` : "ROOT";
  const sure = symbol.saidHead ? "as you said" : symbol.arc_confidence === undefined ? "" : `${Math.round(100 * symbol.arc_confidence)} % sure`;
  return `head ${head}${sure ? `, ${sure}` : ""}`;
}

/** Return attributes that fit long names, such as sin, into their cell. */
function narrowed(label) {
  return [...label].length > 3 ? { textLength: CELL - 10, lengthAdjust: "spacingAndGlyphs" } : {};
}

/** Return the level of the arc to each dependent, by number: one above the highest arc inside it. */
export function levelsOf(heads) {
  const spans = heads
    .map((head, place) => ({ number: place + 1, low: Math.min(head, place + 1), high: Math.max(head, place + 1), head }))
    .filter((span) => span.head >= 0)
    .sort((a, b) => a.high - a.low - (b.high - b.low) || a.low - b.low);
  const levels = new Map();
  const drawn = [];
  for (const span of spans) {
    const inside = drawn.filter((one) => span.low <= one.low && one.high <= span.high);
    const crossed = drawn.filter((one) => (one.low < span.low && span.low < one.high && one.high < span.high)
      || (span.low < one.low && one.low < span.high && span.high < one.high)).map((one) => one.level);
    let level = 1 + Math.max(0, ...inside.map((one) => one.level));
    while (crossed.includes(level)) level += 1;
    levels.set(span.number, level);
    drawn.push({ ...span, level });
  }
  return levels;
}
