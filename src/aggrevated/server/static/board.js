// The page of runs: what the server tells is taken, drawn and listed; what is chosen stays with the tab.

import { make, say, the } from "./common.js";
import { Details } from "./board-details.js";
import { Figure } from "./board-curves.js";
import { Following } from "./board-following.js";
import { Choice, Runs } from "./board-model.js";
import { Table } from "./board-table.js";

const MOST_SENTENCES = 40;

const runs = new Runs();
const choice = new Choice();
const figures = new Map(); // by task
let lit = ""; // the path of the run that is pointed at
let drawing = 0;
let told = ""; // of how many runs there are; said again only where it is another sentence

const act = {
  toggle(list, path) {
    choice.toggle(list, path);
    showAll();
  },
  choose(name, value) {
    choice[name] = value;
    choice.keep();
    showAll();
  },
  light(path) {
    lit = path;
    drawSoon();
  },
};
const table = new Table(runs, choice, act);
const details = new Details(runs, choice, act);

/** Everything, as it is now. */
function showAll() {
  if (!runs.entries) return;
  table.show();
  draw();
  warn();
  details.show();
}

/** The figures, at the next picture of the screen. */
function drawSoon() {
  cancelAnimationFrame(drawing);
  drawing = requestAnimationFrame(draw);
}

/** What is drawn: entries that pass the filters and are ticked, with their trials where these are unfolded. */
function drawn() {
  const found = [];
  for (const entry of table.listed()) {
    const members = choice.unfolded.includes(entry.path) ? runs.membersOf(entry) : [];
    for (const one of [entry, ...members]) if (!choice.hidden.includes(one.path)) found.push(one);
  }
  return found;
}

/** A figure for each task. */
function draw() {
  if (!runs.entries) return;
  const byTask = Map.groupBy ? Map.groupBy(drawn(), (entry) => entry.task) : grouped(drawn());
  const tasks = [...byTask.keys()].filter((task) => byTask.get(task).some((entry) => entry.iterations > 0)).sort();
  for (const task of tasks) if (!figures.has(task)) figures.set(task, new Figure(task));
  const place = the("figures");
  const wanted = tasks.map((task) => figures.get(task).element);
  place.classList.toggle("several", wanted.length > 1);
  if (wanted.length !== place.children.length || wanted.some((one, i) => place.children[i] !== one)) place.replaceChildren(...wanted);
  for (const task of tasks) {
    figures.get(task).draw(byTask.get(task).map((entry) => ({
      entry, style: runs.styleOf(entry), thin: Boolean(entry.group), strong: entry.path === lit || choice.opened.includes(entry.path),
    })), choice);
  }
  the("no-curves").hidden = tasks.length > 0;
}

function grouped(entries) {
  const found = new Map();
  for (const entry of entries) found.set(entry.task, [...(found.get(entry.task) || []), entry]);
  return found;
}

/** Everything that is wrong with what is listed. */
function warn() {
  const told = table.listed().flatMap((entry) => [
    ...entry.damage.map((text) => ({ entry, text, kind: "bad", sign: "✕" })),
    ...entry.warnings.map((text) => ({ entry, text, kind: "warm", sign: "⚠" })),
  ]);
  the("warnings").hidden = !told.length;
  const items = told.slice(0, MOST_SENTENCES).map(({ entry, text, kind, sign }) => ({ kind, text: `${sign} ${entry.path}: ${text}` }));
  if (told.length > MOST_SENTENCES) items.push({ kind: "muted", text: `and ${told.length - MOST_SENTENCES} more` });
  const list = the("sentences");
  if (list.dataset.told === JSON.stringify(items)) return;
  list.dataset.told = JSON.stringify(items);
  list.replaceChildren(...items.map(({ kind, text }) => make("li", { class: kind, text })));
}

function tell(sentence) {
  if (sentence !== told) say(sentence);
  told = sentence;
}

/** Nobody answers, or not as they should. */
function trouble(error) {
  if (!error) return;
  told = "";
  say(error.message, true);
}

/** What the server told. */
function take(found) {
  const fresh = found.runs.length || found.groups.length || found.keys.length !== runs.byKey.size;
  const first = !runs.entries;
  runs.take(found);
  the("root").textContent = found.root;
  the("left-out").textContent = found.left_out.join(" ");
  if (fresh || first) showAll();
  const alone = runs.all().filter((one) => !one.members);
  const running = alone.filter((one) => one.state === "running").length;
  const none = "There are no runs here yet; they appear by themselves.";
  const few = alone.length === 1 ? "1 run" : `${alone.length} runs`;
  tell(alone.length ? `${few}, ${running} running; followed live.` : none);
  if (fresh) performance.mark("board-drawn", { detail: found.stamp });
}

the("axis").value = choice.axis;
the("log").checked = choice.log;
the("axis").addEventListener("change", () => act.choose("axis", the("axis").value));
the("log").addEventListener("change", () => act.choose("log", the("log").checked));
the("filters").addEventListener("submit", (event) => event.preventDefault());
the("clear").addEventListener("click", () => {
  choice.clear();
  the("find").value = "";
  showAll();
});
the("all").addEventListener("click", () => act.choose("hidden", []));
the("none").addEventListener("click", () => act.choose("hidden", runs.all().map((one) => one.path)));
new ResizeObserver(drawSoon).observe(the("figures"));
new Following(take, trouble).look();
