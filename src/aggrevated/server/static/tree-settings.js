// What is chosen: depth, costs, noise, step, episodes and seed.

import { make, the } from "./common.js";

const CHOICES = {
  depth: [3, 4, 5, 6, 7, 8].map((depth) => [depth, `${depth}: ${2 ** (depth - 1)} leaves`]),
  rollouts: [[0, "exact"], ...[1, 3, 10, 100].map((many) => [many, noisy(many)])],
  step: [[0.25, "¼ ×"], [0.5, "½ ×"], ...[1, 2, 4, 8, 16].map((many) => [many, times(many)])],
};
const TYPED = ["episodes", "seed"];

export class Settings extends EventTarget {
  constructor() {
    super();
    for (const [id, choices] of Object.entries(CHOICES)) {
      the(id).append(...choices.map(([value, text]) => make("option", { value, text })));
    }
    the("settings").addEventListener("change", () => this.dispatchEvent(new Event("change")));
    the("settings").addEventListener("submit", (event) => event.preventDefault());
    the("another").addEventListener("click", () => {
      the("seed").value = (Number(the("seed").value) || 0) + 1;
      this.dispatchEvent(new Event("change"));
    });
  }

  /** As the server takes them. */
  get values() {
    const chosen = Object.keys(CHOICES).map((id) => [id, Number(the(id).value)]);
    const typed = TYPED.map((id) => [id, the(id).valueAsNumber]);
    return { ...Object.fromEntries([...chosen, ...typed]), costs: the("costs").value };
  }

  /** Show these; what is no usual choice becomes one. */
  set values(values) {
    for (const [id, value] of Object.entries(values)) {
      const among = CHOICES[id];
      if (among && !among.some(([known]) => known === value)) {
        the(id).append(make("option", { value, text: id === "step" ? times(value) : noisy(value) }));
      }
      the(id).value = value;
    }
  }
}

function noisy(many) {
  return many === 1 ? "1 roll-out" : `${many} roll-outs`;
}

function times(many) {
  return `${many} ×`;
}
