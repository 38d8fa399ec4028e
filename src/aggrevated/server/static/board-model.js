// What the server told, and what the person who looks has chosen.

const KEPT = "board"; // in the tab's own storage: a reload changes nothing
const COLOURS = 7;
const DASHES = 4;
const AXES = { episodes: 0, steps: 3, queries: 4, seconds: 5 }; // which column of a point it is over
const NOTHING = { find: "", task: "", method: "", update: "", state: "" };

/** All runs and trials, by key. An entry is a run by itself, or the trials of one folder. */
export class Runs {
  constructor() {
    this.life = "";
    this.byKey = new Map();
    this.styles = new Map(); // by path, in the order in which they came
  }

  /** Take what the server says is new. */
  take(found) {
    const life = found.stamp.split("-")[0];
    if (life !== this.life) this.byKey.clear();
    this.life = life;
    for (const run of found.runs) this.byKey.set(run.key, joined(this.byKey.get(run.key), run));
    for (const group of found.groups) this.byKey.set(group.key, group);
    const there = new Set(found.keys);
    for (const key of this.byKey.keys()) if (!there.has(key)) this.byKey.delete(key);
    const members = new Set([...this.byKey.values()].flatMap((one) => one.members || []));
    this.entries = [...this.byKey.values()].filter((one) => !members.has(one.key));
    this.entries.sort((a, b) => a.path.localeCompare(b.path, "en", { numeric: true }));
    for (const entry of this.entries) this.styleOf(entry);
  }

  /** The trials of an entry; nothing for a run by itself. */
  membersOf(entry) {
    return (entry.members || []).map((key) => this.byKey.get(key)).filter(Boolean);
  }

  /** All entries and their trials. */
  all() {
    return this.entries.flatMap((entry) => [entry, ...this.membersOf(entry)]);
  }

  /** The run or the trials at that path. */
  at(path) {
    return this.all().find((one) => one.path === path);
  }

  /** {colour, dash, shape}: numbers that stay with a path; trials have that of their folder. */
  styleOf(entry) {
    const path = entry.group || entry.path;
    if (!this.styles.has(path)) this.styles.set(path, this.styles.size);
    const number = this.styles.get(path);
    return { colour: number % COLOURS, dash: Math.floor(number / COLOURS) % DASHES, shape: number % 4 };
  }
}

/** A run with its new points behind those that are known. */
function joined(known, run) {
  const kept = run.from && known ? known.kept.slice(0, run.from).concat(run.points) : run.points;
  const last = kept.at(-1);
  const points = run.newest && (!last || last[0] !== run.newest[0]) ? [...kept, run.newest] : kept;
  return { ...run, kept, points };
}

/** [{x, y, low, high, current, trials}] of an entry over an axis. */
export function curveOf(entry, axis, log) {
  const column = AXES[axis];
  const over = (point, offset) => (column === 0 ? point[0] * entry.episodes : point[column + offset]);
  const found = entry.members
    ? entry.curve.map((point) => ({ x: over(point, 2), y: point[2], low: point[3], high: point[4], trials: point[1] }))
    : entry.points.map((point) => ({ x: over(point, 0), y: point[2], current: point[1] }));
  if (axis === "episodes" && !log && entry.initial !== null && entry.initial !== undefined) {
    found.unshift({ x: 0, y: entry.initial, current: entry.initial });
  }
  return found.filter((point) => point.y !== null && point.x !== null && (!log || point.x > 0));
}

/** What is wrong with an entry, in one word; nothing if nothing is. */
export function troubleOf(entry) {
  if (entry.damage.length) return "damaged";
  return entry.warnings.some((sentence) => sentence.includes("learning has died")) ? "died" : "";
}

/** What is chosen: filters, what is drawn and opened, the axis. */
export class Choice {
  constructor() {
    const fresh = { ...NOTHING, hidden: [], opened: [], unfolded: [], axis: "episodes", log: false, order: "path", alike: false };
    let known = {};
    try {
      known = JSON.parse(sessionStorage.getItem(KEPT)) || {};
    } catch {
      // what is not to be read is forgotten
    }
    Object.assign(this, fresh, known);
  }

  /** Remember it in this tab. */
  keep() {
    sessionStorage.setItem(KEPT, JSON.stringify(this));
  }

  /** Put a path on one of the lists, or take it off. */
  toggle(list, path) {
    this[list] = this[list].includes(path) ? this[list].filter((one) => one !== path) : [...this[list], path];
    this.keep();
  }

  /** No filter any more. */
  clear() {
    Object.assign(this, NOTHING);
    this.keep();
  }

  /** Whether an entry passes the filters. */
  fits(entry) {
    const words = `${entry.path} ${entry.label} ${entry.task}`.toLowerCase();
    const exact = ["task", "method", "update"].every((name) => !this[name] || entry[name] === this[name]);
    const state = !this.state || entry.state === this.state || troubleOf(entry) === this.state;
    return exact && state && this.find.toLowerCase().split(/\s+/).every((word) => words.includes(word));
  }
}
