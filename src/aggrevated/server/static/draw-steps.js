// The parse as it went: played, or step by step; what the policy saw and thought, and what each transition would cost.

import { make, still, the } from "./common.js";

const PACE = 700; // milliseconds a step

export class Steps extends EventTarget {
  #steps = [];
  #labels = [];
  #timer = null;
  #at = 0;

  constructor() {
    super();
    the("first").addEventListener("click", () => this.#stopAt(0));
    the("back").addEventListener("click", () => this.#stopAt(this.#at - 1));
    the("next").addEventListener("click", () => this.#stopAt(this.#at + 1));
    the("last").addEventListener("click", () => this.#stopAt(this.#steps.length - 1));
    the("play").addEventListener("click", () => (this.#timer ? this.#pause() : this.#play()));
    the("at").addEventListener("input", () => this.#stopAt(Number(the("at").value)));
  }

  /** The step that is looked at; null at the end, where the tree is as it is. */
  get current() {
    return this.#at < this.#steps.length - 1 ? this.#steps[this.#at] : null;
  }

  /** Of symbols with these labels. Who looks at the end stays there. */
  show(steps, labels) {
    const atEnd = this.#at >= this.#steps.length - 1;
    const same = steps.length === this.#steps.length;
    [this.#steps, this.#labels] = [steps, ["ROOT", ...labels]];
    the("playing").hidden = steps.length === 0;
    the("at").max = Math.max(0, steps.length - 1);
    if (!steps.length) this.#pause();
    else this.go(atEnd || !same ? steps.length - 1 : this.#at);
  }

  go(place) {
    if (!this.#steps.length) return;
    this.#at = Math.min(Math.max(0, place), this.#steps.length - 1);
    const step = this.#steps[this.#at];
    the("at").value = this.#at;
    the("at").setAttribute("aria-valuetext", `step ${this.#at} of ${this.#steps.length - 1}`);
    for (const id of ["first", "back"]) the(id).disabled = this.#at === 0;
    for (const id of ["next", "last"]) the(id).disabled = this.#at === this.#steps.length - 1;
    the("step-said").textContent = this.#said(step);
    the("stack").replaceChildren(...step.stack.map((number, place) => this.#item(number, place === step.stack.length - 1)));
    const waiting = step.buffer ? this.#labels.map((_, number) => number).slice(step.buffer) : [];
    the("buffer").replaceChildren(...waiting.map((number, place) => this.#item(number, place === 0)));
    the("transitions").tBodies[0].replaceChildren(...step.transitions.map((one) => row(one, step.taken)));
    this.dispatchEvent(new Event("go"));
  }

  #stopAt(place) {
    this.#pause();
    this.go(place);
  }

  #play() {
    if (this.#at >= this.#steps.length - 1) this.go(0);
    if (still.matches) return this.go(this.#at + 1); // who wants no motion goes step by step
    the("play").textContent = "Pause";
    this.#timer = setInterval(() => {
      this.go(this.#at + 1);
      if (this.#at === this.#steps.length - 1) this.#pause();
    }, PACE);
  }

  #pause() {
    clearInterval(this.#timer);
    this.#timer = null;
    the("play").textContent = "Play";
  }

  #item(number, front) {
    return make("li", { class: front ? "front" : false, text: number ? `${this.#labels[number]} ${subscript(number)}` : "ROOT" });
  }

  #said(step) {
    const place = `Step ${this.#at} of ${this.#steps.length - 1}`;
    const taken = step.transitions.find((one) => one.name === step.taken);
    if (!taken) return `${place}: the parse has ended.`;
    const sure = `${step.taken} is next, the policy is ${percent(taken.probability)} sure`;
    if (taken.costs === undefined) return `${place}: ${sure}.`;
    return `${place}: ${sure}. ${taken.costs ? `This mistake costs ${arcs(taken.costs)}.` : "It costs nothing."}`;
  }
}

function row(transition, taken) {
  const { name, legal, probability, costs, cost_to_go: toGo } = transition;
  const meter = make("meter", { min: 0, max: 1, value: probability, "aria-label": `probability of ${name}` });
  const cost = costs === undefined ? "" : costs ? `+${arcs(costs)}` : "nothing";
  const kinds = [name === taken && "taken", !legal && "illegal"].filter(Boolean).join(" ");
  return make(
    "tr", { class: kinds || false, "data-transition": name },
    make("td", { text: name }),
    make("td", {}, legal ? make("span", { class: "share" }, meter, percent(probability)) : "not possible"),
    make("td", { class: costs ? "bad" : costs === 0 ? "good" : false, text: cost }),
    make("td", { text: toGo === undefined ? "" : arcs(toGo) }),
  );
}

const percent = (share) => `${(100 * share).toFixed(share > 0.995 || share < 0.005 ? 1 : 0)} %`;
const arcs = (count) => `${count} arc${count === 1 ? "" : "s"}`;
const subscript = (number) => String(number).replace(/\d/g, (digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]);
