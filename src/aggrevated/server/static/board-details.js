// Runs that are opened: what they are, their commands and films, and their settings side by side.

import { askFor, copy, make, say, still, the } from "./common.js";
import { swatch } from "./board-curves.js";
import { counted, known, shown } from "./scales.js";
import { toExpert } from "./board-table.js";

const AGAIN = 500; // milliseconds until a film is asked for again
const MOST = 12; // runs whose settings stand side by side

/** All opened runs, as cards. */
export class Details {
  constructor(runs, choice, act) {
    Object.assign(this, { runs, choice, act, cards: new Map(), compared: "" });
    the("alike").checked = choice.alike;
    the("alike").addEventListener("change", () => act.choose("alike", the("alike").checked));
  }

  /** Show what is. */
  show() {
    const opened = this.choice.opened.map((path) => this.runs.at(path)).filter(Boolean);
    const cards = opened.map((entry) => {
      if (!this.cards.has(entry.path)) this.cards.set(entry.path, new Card(entry, this.runs.styleOf(entry), this.act));
      return this.cards.get(entry.path).fill(entry);
    });
    for (const path of this.cards.keys()) if (!this.choice.opened.includes(path)) this.cards.delete(path);
    const place = the("opened");
    const same = cards.length === place.children.length && cards.every((one, i) => place.children[i] === one);
    if (!same) place.replaceChildren(...cards);
    the("nothing-opened").hidden = cards.length > 0;
    the("settings").hidden = !cards.length;
    this.compare(opened.slice(0, MOST));
  }

  /** Settings side by side; asked for only where the runs, or what is wanted of them, are others. */
  async compare(opened) {
    const wanted = JSON.stringify([this.runs.life, opened.map((one) => [one.key, isReadable(one)]), this.choice.alike]);
    if (!opened.length || wanted === this.compared) return;
    this.compared = wanted;
    try {
      const rows = await askFor(`settings?runs=${opened.map((one) => one.key).join(",")}`);
      if (this.compared === wanted) this.lay(opened, rows);
    } catch (error) {
      this.compared = "";
      say(error.message, true);
    }
  }

  lay(opened, rows) {
    const alone = opened.length === 1;
    const shownRows = rows.filter((row) => alone || this.choice.alike || row.differs);
    const heads = ["Setting", ...opened.map((one) => one.path)].map((text) => make("th", { scope: "col", text }));
    const body = shownRows.map((row) => make("tr", { class: row.differs ? "differs" : "" },
      make("th", { scope: "row" }, row.differs ? make("span", { text: "≠ ", "aria-label": "differs:", role: "img" }) : "", row.name),
      ...row.values.map((value) => make("td", { text: value ?? "–" }))));
    the("side-by-side").replaceChildren(make("thead", {}, make("tr", {}, ...heads)), make("tbody", {}, ...body));
    the("no-difference").hidden = shownRows.length > 0;
    the("alike").closest("label").hidden = alone;
  }
}

/** One opened run. */
class Card {
  constructor(entry, style, act) {
    this.facts = make("dl");
    this.said = make("div");
    this.command = make("div", { class: "command" });
    this.resume = make("div", { class: "command", hidden: true });
    this.film = new Film(entry);
    const close = button("Close", `Close ${entry.path}`, () => act.toggle("opened", entry.path));
    const title = make("h3", {}, swatch(style), make("span", { text: entry.path }));
    this.element = make("article", { class: "one", "aria-label": entry.path }, make("header", {}, title, close),
      this.facts, this.said, this.command, this.resume, this.film.element);
    this.key = null;
  }

  /** With what the run is now. */
  fill(entry) {
    const facts = factsOf(entry);
    const text = JSON.stringify([facts, entry.warnings, entry.damage]);
    if (text !== this.text) {
      this.text = text;
      this.facts.replaceChildren(...facts.flatMap(([name, value]) => [make("dt", { text: name }), make("dd", { text: value })]));
      const damage = entry.damage.map((one) => make("p", { class: "bad", text: `✕ ${one}` }));
      this.said.replaceChildren(...damage, ...entry.warnings.map((one) => make("p", { class: "warm", text: `⚠ ${one}` })));
    }
    this.resume.hidden = entry.state !== "stopped";
    const key = isReadable(entry) ? entry.key : null; // one that is repaired is asked again
    if (key !== null && key !== this.key) this.ask(entry);
    this.key = key;
    this.film.key = entry.key;
    this.film.element.hidden = entry.moves === false;
    return this.element;
  }

  /** Its command: the short one comes from a process that has to load first. */
  async ask(entry) {
    this.command.replaceChildren(make("code", { text: "…" }));
    try {
      const told = await askFor(`command?run=${entry.key}`);
      this.command.replaceChildren(...copied(told.command, `Copy the command of ${entry.path}`));
      this.resume.replaceChildren(...copied(told.resume, `Copy what goes on with ${entry.path}`));
    } catch (error) {
      this.command.replaceChildren(make("p", { class: "bad", text: error.message }));
      this.key = null;
    }
  }
}

const isReadable = (entry) => entry.state !== "unreadable";

function copied(text, label) {
  return [make("code", { text }), button("Copy", label, () => copy(text))];
}

/** A small button; `label` says of what it is. */
function button(text, label, onclick) {
  return make("button", { type: "button", class: "small", text, "aria-label": label, onclick });
}

/** [name, value] of all that a card lists. */
function factsOf(entry) {
  const interval = known(entry.low) ? ` (${shown(entry.low)} to ${shown(entry.high)})` : "";
  const bill = `${counted(entry.steps)} simulator steps, ${counted(entry.queries)} queries, ${counted(entry.seconds)} s`;
  return [
    ["State", stateOf(entry)],
    ["What", `${entry.label}, ${entry.policy} policy, on ${entry.task}`],
    ["Best", shown(entry.best) + interval],
    ...(known(entry.test) ? [["Test", shown(entry.test)]] : []),
    ["Expert", expertOf(entry)],
    ...(entry.members ? [] : [["Bill", bill]]),
  ];
}

function stateOf(entry) {
  if (entry.members) return `${entry.members.length} trials, ${entry.ended} ended`;
  return `${entry.state}, by ${entry.known_by}${entry.checked ? "" : "; seals are being checked"}`;
}

function expertOf(entry) {
  if (!known(entry.expert)) return "not known before a run of this world has ended";
  const beside = known(entry.beside) ? `; ${entry.measure} in the test ${toExpert(entry)}` : "";
  return `${shown(entry.expert)}${entry.lent ? ", of another run of the same world" : ""}${beside}`;
}

/** The policy acting beside its expert. */
class Film {
  constructor(entry) {
    this.key = entry.key;
    this.path = entry.path;
    this.seed = make("input", { type: "number", min: 0, max: 1000000, value: 0, step: 1 });
    this.button = button("Make a film", `Make a film of ${entry.path} beside its expert`, () => this.begin());
    this.pause = make("button", { type: "button", class: "small", text: "Stop", hidden: true, onclick: () => this.toggle() });
    this.said = make("p", { class: "muted", role: "status" });
    this.place = make("div");
    const which = make("label", { class: "inline" }, "of episode ", this.seed);
    this.element = make("div", { class: "film" }, make("div", { class: "row" }, this.button, which, this.pause), this.said, this.place);
  }

  /** Ask for it, and wait until it is there. */
  async begin() {
    this.button.disabled = true;
    this.said.className = "muted";
    this.said.textContent = "It is being made; the first takes some seconds.";
    try {
      let film = await askFor("film", { run: this.key, seed: Number(this.seed.value) });
      while (film.state === "making") {
        await new Promise((done) => setTimeout(done, AGAIN));
        film = await askFor(`film?film=${film.film}`);
      }
      if (film.state === "failed") throw new Error(film.error);
      this.show(film);
    } catch (error) {
      this.said.className = "bad";
      this.said.textContent = error.message;
    }
    this.button.disabled = false;
  }

  show(film) {
    this.said.textContent = `Learned ${shown(film.learned_return)}, expert ${shown(film.expert_return)}, from the same start.`;
    const alt = `The policy of ${this.path} on the left, its expert on the right`;
    this.moving = make("img", { src: `film.gif?film=${film.film}`, alt });
    this.moving.addEventListener("load", () => {
      const [width, height] = [this.moving.naturalWidth, this.moving.naturalHeight];
      this.still = make("canvas", { width, height, role: "img", "aria-label": "The first picture of the film" });
      this.still.getContext("2d").drawImage(this.moving, 0, 0);
      this.pause.hidden = false;
      if (still.matches) this.toggle();
    }, { once: true });
    this.place.replaceChildren(this.moving);
    this.pause.textContent = "Stop";
  }

  toggle() {
    const moves = this.place.firstChild === this.moving;
    this.place.replaceChildren(moves ? this.still : this.moving);
    this.pause.textContent = moves ? "Play" : "Stop";
  }
}
