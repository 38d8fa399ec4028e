// The parse step by step: configurations, probabilities, and the cost of each transition.

import { make, the } from "./common.js";
import { Player } from "./player.js";

const PACE = 700; // milliseconds per step

export class Steps extends EventTarget {
  #steps = [];
  #labels = [];
  #player = new Player({ step: "step", speed: () => 1000 / PACE, said: "step-said" });

  constructor() {
    super();
    this.#player.addEventListener("go", () => this.#fill());
  }

  /** The displayed step; null at the end, where the tree is complete. */
  get current() {
    return this.#player.at < this.#steps.length - 1 ? this.#steps[this.#player.at] : null;
  }

  /** Show the steps of symbols with these labels; a display of the end stays at the end. */
  show(steps, labels) {
    const [player, last] = [this.#player, steps.length - 1];
    const stays = player.at < player.end && steps.length === this.#steps.length;
    [this.#steps, this.#labels] = [steps, ["ROOT", ...labels]];
    the("playing").hidden = steps.length === 0;
    if (!steps.length) player.pause();
    else player.begin(last, stays ? player.at : last);
  }

  #fill() {
    const step = this.#steps[this.#player.at];
    the("step-said").textContent = this.#said(step);
    the("stack").replaceChildren(...step.stack.map((number, place) => this.#item(number, place === step.stack.length - 1)));
    const waiting = step.buffer ? this.#labels.map((_, number) => number).slice(step.buffer) : [];
    the("buffer").replaceChildren(...waiting.map((number, place) => this.#item(number, place === 0)));
    the("transitions").tBodies[0].replaceChildren(...step.transitions.map((one) => row(one, step.taken)));
    this.dispatchEvent(new Event("go"));
  }

  #item(number, front) {
    return make("li", { class: front ? "front" : false, text: number ? `${this.#labels[number]} ${subscript(number)}` : "ROOT" });
  }

  #said(step) {
    const place = `Step ${this.#player.at} of ${this.#player.end}`;
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
