// A learner's tree: what its policy does or it has tried, the path of the episode, and where its episodes went.

import { make, makeSvg } from "./common.js";

const [LEFT, RIGHT, TOP, HEIGHT] = [58, 10, 12, 330]; // pixels
const [LEAVES, COSTS, COUNTS] = [178, 226, 306]; // where leaves are, and the bars of costs and of counts stand
const [COST, COUNT] = [36, 42]; // the highest bars
const [THIN, WIDE] = [0.7, 6]; // of an edge that nobody, and that everybody goes
const ABOUT = {
  EG: "A wide edge: the policy probably goes there.",
  FTL: "Coloured edges: what the leader does; dashed where it is still a guess.",
  UCB: "A wide edge: many of its episodes went there.",
};

export class LearnerView {
  constructor(name, sign) {
    this.name = name;
    this.kind = name.toLowerCase();
    this.svg = makeSvg("svg", { class: `tree ${this.kind}`, role: "img" });
    this.title = make("p", { class: "muted" });
    this.facts = make("p", { class: "facts" });
    const heading = make("h2", { id: `title-${this.kind}` }, sign, name);
    const text = `${ABOUT[name]} Filled nodes: visited. Line to the ring: this episode. ★: the best leaf.`;
    const key = make("p", { class: "key muted", text });
    const labelled = { class: "card", "aria-labelledby": `title-${this.kind}` };
    this.element = make("section", labelled, heading, this.title, this.svg, key, this.facts);
  }

  /** Another game. */
  begin(game, learner) {
    Object.assign(this, { game, learner, leaves: game.means.length, inner: game.means.length - 1 });
    this.title.textContent = learner.title;
    this.#rewind();
    this.draw();
  }

  /** The episode to look at; 0 is before the first. */
  show(n) {
    if (n < this.n) this.#rewind();
    while (this.n < n) this.#advance();
    this.#update();
  }

  #rewind() {
    this.n = 0;
    this.counts = new Array(this.leaves).fill(0); // how often each leaf was taken
    this.through = new Array(this.inner + this.leaves).fill(0); // and each node
    this.policy = this.learner.start?.slice();
    this.ones = new Array(this.leaves).fill(0); // costs of 1 that were seen
  }

  /** Policies learn from an episode when it is over: π_n is what the first n − 1 made of it. */
  #advance() {
    const { taken, moved, costs } = this.learner;
    if (this.policy && this.n > 0) this.pathOf(taken[this.n - 1]).forEach((node, level) => {
      if (node < this.inner) this.policy[node] = moved[this.n - 1][level];
    });
    const leaf = taken[this.n];
    this.counts[leaf] += 1;
    if (costs) this.ones[leaf] += costs[this.n];
    for (const node of this.pathOf(leaf)) this.through[node] += 1;
    this.n += 1;
  }

  /** The nodes from the root to a leaf, which is the last of them. */
  pathOf(leaf) {
    const nodes = [leaf + this.inner];
    while (nodes[0] > 0) nodes.unshift((nodes[0] - 1) >> 1);
    return nodes;
  }

  /** Lay the tree out on as much paper as there is. */
  draw() {
    this.width = this.svg.clientWidth || 380;
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${HEIGHT}`);
    const step = (this.step = (this.width - LEFT - RIGHT) / this.leaves); // from leaf to leaf
    this.places = [];
    for (let node = this.inner + this.leaves - 1; node >= 0; node--) {
      const level = Math.floor(Math.log2(node + 1));
      const y = TOP + ((LEAVES - TOP) * level) / this.game.decisions;
      const below = [2 * node + 1, 2 * node + 2].map((child) => this.places[child]?.[0]);
      this.places[node] = [node >= this.inner ? LEFT + (node - this.inner + 0.5) * step : (below[0] + below[1]) / 2, y];
    }
    this.edges = this.places.map((place, node) => node && makeSvg("path", { d: line(this.places[(node - 1) >> 1], place) }));
    const radius = (node) => Math.min(4, (node >= this.inner ? 0.42 : 0.6) * step);
    const circle = ([cx, cy], node) => makeSvg("circle", { cx: round(cx), cy: round(cy), r: round(Math.max(1.1, radius(node))) });
    this.nodes = this.places.map(circle);
    this.path = makeSvg("path", { class: "path" });
    this.end = makeSvg("circle", { class: "end", r: round(Math.max(4.5, radius(this.inner) + 3)) });
    this.most = makeSvg("text", { class: "most", "text-anchor": "middle" });
    this.svg.replaceChildren(...this.edges.slice(1), ...this.nodes, this.path, this.end, ...this.#bars(step), this.most);
    this.#update();
  }

  /** Costs, and counts, below the leaves. */
  #bars(step) {
    const width = round(Math.max(1, step * 0.72));
    const { means, best } = this.game;
    const at = (leaf) => this.places[leaf + this.inner][0];
    const costs = means.map((cost, leaf) => makeSvg("rect", {
      class: leaf === best ? "cost best" : "cost",
      x: round(at(leaf) - width / 2), width, y: round(COSTS - COST * cost), height: round(COST * cost),
    }));
    this.bars = means.map((_, leaf) => makeSvg("rect", { class: "count", x: round(at(leaf) - width / 2), width }));
    this.titles = means.map((_, leaf) => this.bars[leaf].appendChild(makeSvg("title")));
    const bases = [COSTS, COUNTS].map((y) => makeSvg("path", { class: "base", d: `M${LEFT},${y + 0.5}H${this.width - RIGHT}` }));
    const labels = [["cost", COSTS], ["episodes", COUNTS]].map(([text, y]) => makeSvg("text", { x: 2, y: y - 2, text }));
    const star = makeSvg("text", { class: "star", x: round(at(best)), y: COSTS + 17, "text-anchor": "middle", text: "★" });
    return [...costs, ...this.bars, ...bases, ...labels, star];
  }

  #update() {
    const shares = this.policy ? this.#reach() : this.through.map((many) => many / Math.max(1, this.n));
    for (let node = 1; node < this.places.length; node++) {
      const { kind, wide } = this.name === "FTL" ? this.#choice(node) : flow(shares[node]);
      this.edges[node].setAttribute("class", `edge ${kind}`);
      this.edges[node].setAttribute("stroke-width", round(wide));
    }
    this.nodes.forEach((node, place) => node.setAttribute("class", this.through[place] ? "node known" : "node"));
    this.#count();
    const leaf = this.n ? this.learner.taken[this.n - 1] : null;
    const path = leaf === null ? [] : this.pathOf(leaf).map((node) => this.places[node]);
    this.path.setAttribute("d", path.map(([x, y], place) => `${place ? "L" : "M"}${round(x)},${round(y)}`).join(""));
    this.end.setAttribute("visibility", leaf === null ? "hidden" : "visible");
    (path.at(-1) || []).forEach((value, place) => this.end.setAttribute(place ? "cy" : "cx", round(value)));
    this.#say(leaf);
  }

  /** How likely the policy comes to each node. */
  #reach() {
    const reach = [1];
    this.policy.forEach((right, node) => {
      reach[2 * node + 1] = reach[node] * (1 - right);
      reach[2 * node + 2] = reach[node] * right;
    });
    return reach;
  }

  /** What FTL's leader does at the node above: this, or the other; a guess where it has never been. */
  #choice(node) {
    const above = (node - 1) >> 1;
    const led = this.policy[above] === (node === 2 * above + 2 ? 1 : 0);
    if (!led) return { kind: "off", wide: THIN };
    if (!this.through[above]) return { kind: "on guess", wide: Math.min(1.4, Math.max(0.9, this.step / 4)) };
    return { kind: "on", wide: Math.min(4, Math.max(1.6, this.step / 2)) };
  }

  #count() {
    const highest = Math.max(...this.counts);
    this.counts.forEach((many, leaf) => {
      const height = highest ? (COUNT * many) / highest : 0;
      this.bars[leaf].setAttribute("y", round(COUNTS - height));
      this.bars[leaf].setAttribute("height", round(height));
      this.titles[leaf].textContent = `leaf ${leaf + 1} costs ${this.game.means[leaf].toFixed(2)} on average; taken ${many} times`;
    });
    const where = this.places[this.counts.indexOf(highest) + this.inner][0];
    this.most.textContent = highest ? `${highest} ×` : "";
    this.most.setAttribute("x", round(Math.min(Math.max(where, LEFT + 12), this.width - RIGHT - 12)));
    this.most.setAttribute("y", COUNTS + 15);
  }

  #say(leaf) {
    const tried = this.n ? this.learner.tried[this.n - 1] : 0;
    const best = leaf === this.game.best ? ", the best" : "";
    const where = leaf === null ? "no episode yet" : `this episode ends at leaf ${leaf + 1} of ${this.leaves}${best}`;
    this.svg.setAttribute("aria-label", `Tree of ${this.name}: ${where}; ${tried} leaves tried`);
    const said = leaf === null ? ["No episode yet."] : [`Leaf ${leaf + 1}${best && `${best} one`}. `, ...this.#heard(leaf)];
    this.facts.replaceChildren(...said);
  }

  /** What the learner was told in this episode. */
  #heard(leaf) {
    if (!this.learner.asked) {
      const tries = this.counts[leaf] === 1 ? "its first try" : `${this.counts[leaf]} tries`;
      return [`It cost ${this.learner.costs[this.n - 1]} this time, and ${this.ones[leaf]} in ${tries}.`];
    }
    const [left, right] = this.learner.asked[this.n - 1];
    const pairs = left.map((cost, level) => make("span", { class: "pair", text: `${brief(cost)} | ${brief(right[level])}` }));
    return ["The expert said of left | right, from the root down: ", ...pairs.flatMap((pair, level) => [level ? ", " : "", pair]), "."];
  }
}

const flow = (share) => ({ kind: share > 0 ? "on" : "off", wide: THIN + (WIDE - THIN) * share });
const line = ([x, y], [to, bottom]) => `M${round(x)},${round(y)}L${round(to)},${round(bottom)}`;
const brief = (cost) => String(Math.round(cost * 100) / 100);
const round = (value) => Math.round(value * 100) / 100;
