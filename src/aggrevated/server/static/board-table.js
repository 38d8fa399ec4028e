// The list of runs, with filters: a row stays the same element as long as its run is there.

import { make, the } from "./common.js";
import { swatch } from "./board-curves.js";
import { troubleOf } from "./board-model.js";
import { counted, known, shown, signed } from "./scales.js";

const STATES = {
  running: "● running",
  ended: "✓ ended",
  stopped: "■ stopped",
  waiting: "… waiting",
  unreadable: "✕ unreadable",
  damaged: "✕ damaged",
  died: "⚠ died",
};
const ORDER = ["damaged", "died", "running", "stopped", "waiting", "unreadable", "ended"];
const FILTERS = ["task", "method", "update", "state"];

/** Put text where it is not already, so that nobody's selection or screen reader is disturbed. */
const write = (element, text) => element.textContent !== text && (element.textContent = text);

/** The table; `act` has toggle(list, path), light(path) and choose(name, value). */
export class Table {
  constructor(runs, choice, act) {
    Object.assign(this, { runs, choice, act, rows: new Map() });
    the("find").value = choice.find;
    the("order").value = choice.order;
    the("find").addEventListener("input", () => act.choose("find", the("find").value));
    for (const name of [...FILTERS, "order"]) the(name).addEventListener("change", () => act.choose(name, the(name).value));
  }

  /** The entries that pass the filters, in order. */
  listed() {
    const found = this.runs.entries.filter((entry) => this.choice.fits(entry));
    const by = { best: (a, b) => (b.best ?? -Infinity) - (a.best ?? -Infinity), state: (a, b) => place(a) - place(b) }[this.choice.order];
    return by ? found.sort(by) : found;
  }

  /** Show what is. */
  show() {
    this.offer();
    const listed = this.listed();
    const isUnfolded = (entry) => this.choice.unfolded.includes(entry.path);
    const wanted = listed.flatMap((entry) => [entry, ...(isUnfolded(entry) ? this.runs.membersOf(entry) : [])]);
    const elements = wanted.map((entry) => this.rowOf(entry).fill(entry, this.choice));
    const body = the("rows");
    const same = elements.length === body.children.length && elements.every((one, i) => body.children[i] === one);
    if (!same) body.replaceChildren(...elements);
    const paths = new Set(this.runs.all().map((one) => one.path));
    for (const path of this.rows.keys()) if (!paths.has(path)) this.rows.delete(path);
    const all = this.runs.entries.length;
    write(the("measures"), measures(listed));
    write(the("count"), listed.length === all ? `${all}` : `${listed.length} of ${all}`);
  }

  rowOf(entry) {
    const kind = entry.members ? "group" : "run";
    if (this.rows.get(entry.path)?.kind !== kind) this.rows.set(entry.path, new Row(entry, kind, this.runs.styleOf(entry), this.act));
    return this.rows.get(entry.path);
  }

  /** What can be filtered by: what there is. */
  offer() {
    for (const name of FILTERS) {
      const values = this.valuesOf(name);
      const chosen = this.choice[name];
      if (chosen && !values.includes(chosen)) values.push(chosen);
      const select = the(name);
      if (select.dataset.values !== values.join("\n")) {
        select.dataset.values = values.join("\n");
        const options = values.map((one) => make("option", { value: one, text: one }));
        select.replaceChildren(make("option", { value: "", text: "all" }), ...options);
      }
      select.value = chosen;
    }
  }

  valuesOf(name) {
    const all = this.runs.entries;
    if (name !== "state") return [...new Set(all.map((entry) => entry[name]).filter(Boolean))].sort();
    return ORDER.filter((one) => all.some((entry) => entry.state === one || troubleOf(entry) === one));
  }
}

function place(entry) {
  return ORDER.indexOf(troubleOf(entry) || entry.state);
}

/** One row. */
class Row {
  constructor(entry, kind, style, act) {
    const { path } = entry;
    this.kind = kind;
    this.box = make("input", { type: "checkbox", "aria-label": `Draw ${path}`, onchange: () => act.toggle("hidden", path) });
    this.open = make("button", { type: "button", class: "open", text: path, onclick: () => act.toggle("opened", path) });
    this.unfold = make("button", { type: "button", class: "unfold", onclick: () => act.toggle("unfolded", path) });
    this.what = make("span", { class: "what" });
    this.state = make("td", { class: "wide" });
    this.best = make("td", { class: "number" });
    this.expert = make("td", { class: "number" });
    const name = make("div", { class: "name" }, swatch(style), this.open, this.what);
    const [light, dim] = [() => act.light(path), () => act.light("")];
    this.element = make("tr", { onpointerenter: light, onpointerleave: dim, onfocusin: light, onfocusout: dim },
      make("td", {}, this.box, ...(kind === "group" ? [this.unfold] : [])), make("td", {}, name), this.state, this.best, this.expert);
  }

  /** With what the entry is now. */
  fill(entry, choice) {
    const opened = choice.opened.includes(entry.path);
    const trouble = troubleOf(entry);
    const words = [STATES[entry.state], ...(trouble ? [STATES[trouble]] : [])];
    const iterations = counted(entry.iterations) + (entry.planned ? ` / ${counted(entry.planned)}` : "");
    this.box.checked = !choice.hidden.includes(entry.path);
    this.open.setAttribute("aria-pressed", opened);
    this.element.className = `${entry.group ? "member" : ""}${opened ? " opened-row" : ""}`;
    const trials = entry.members ? `${entry.members.length} trials` : `seed ${entry.seed ?? "–"}`;
    this.writeWhat(entry, trials, words, iterations);
    this.writeState(words, entry.state, trouble, iterations);
    write(this.best, shown(entry.best));
    write(this.expert, toExpert(entry));
    this.unfold.setAttribute("aria-expanded", choice.unfolded.includes(entry.path));
    this.unfold.setAttribute("aria-label", `Trials of ${entry.path}`);
    write(this.unfold, choice.unfolded.includes(entry.path) ? "▾" : "▸");
    return this.element;
  }

  writeWhat(entry, trials, words, iterations) {
    const plain = `${entry.label} · ${trials}`;
    const narrow = ` · ${words.join(" ")} · ${iterations}`;
    if (this.what.textContent !== plain + narrow) this.what.replaceChildren(plain, make("span", { class: "narrow", text: narrow }));
  }

  writeState(words, state, trouble, iterations) {
    if (this.state.textContent === words.join("") + iterations) return;
    const lines = words.map((text, i) => make("div", { class: `state ${i ? trouble : state}`, text }));
    this.state.replaceChildren(...lines, make("div", { class: "done", text: iterations }));
  }
}

/** How an entry is to its expert in the test: × is a ratio, + or − a gain; a dash before that is known. */
export function toExpert({ measure, beside }) {
  if (!known(beside)) return "–";
  return measure === "ratio" ? `${shown(beside)} ×` : signed(beside);
}

/** Which of the two it is, by task; nothing before a run has ended. */
function measures(entries) {
  const tasks = (measure) => [...new Set(entries.filter((one) => one.measure === measure).map((one) => one.task))].sort().join(", ");
  const [rated, others] = [tasks("ratio"), tasks("gain")];
  const words = [rated && `the ratio of returns (×) for ${rated}`, others && `the gain above its return (+, −) for ${others}`];
  return rated || others ? `To expert, in the test of runs that have ended: ${words.filter(Boolean).join("; ")}.` : "";
}
