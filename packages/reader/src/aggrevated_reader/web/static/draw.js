// The page to draw on: it sends ink to the reader, shows symbols and tree, and saves corrected pages.

import { ask, askFor, copy, download, make, say, the } from "./common.js";
import { Paper, asPicture } from "./draw-paper.js";
import { Steps } from "./draw-steps.js";
import { Store } from "./draw-store.js";
import { Tree } from "./draw-tree.js";

const AGAIN = 1000; // milliseconds until a failed request is repeated
const LONGEST = 16; // maximum bytes of a label
const IDLE = 250; // milliseconds without changes before the steps of the parse are requested

const store = new Store();
const paper = new Paper(store);
const tree = new Tree();
const steps = new Steps();
const NOTHING = { symbols: [], text: "", latex: "", doubts: [] };
let reading = NOTHING;
let asking = false; // a drawing is being read
let dirty = false; // the drawing has changed since
let idle = null;
let example = 0;

// Reading: one drawing at a time, then the newest one.

async function read() {
  if (asking) return void (dirty = true);
  asking = true;
  dirty = false;
  const asked = performance.now();
  const ids = store.parts.map((part) => part.id);
  try {
    const found = store.isEmpty ? NOTHING : await askFor("read", store.request());
    if (!dirty) show(found, ids);
    if (!dirty && !store.isEmpty) seen(() => performance.measure("read", { start: asked }));
  } catch (error) {
    say(error.message, true);
    if (!refused(error)) return void setTimeout(() => { asking = false; read(); }, AGAIN);
    if (!dirty) show(NOTHING, ids, false);
  }
  asking = false;
  enable();
  if (dirty) read();
}

/** Return whether the server refused the drawing; other requests are repeated. */
const refused = (error) => error.status === 422 || error.status === 413;

/** Call `then` after the changes are on the screen, when the next frame has begun. */
const seen = (then) => requestAnimationFrame(() => requestAnimationFrame(then));

/** Show what was read; add the parts' ids and the corrections to the symbols. */
function show(found, ids, aloud = true) {
  const symbols = found.symbols.map((symbol) => {
    const parts = symbol.parts.map((place) => ids[place]).sort((a, b) => a - b);
    const said = store.said.find((one) => one.parts.join() === parts.join());
    const [saidLabel, saidHead] = [said?.label !== undefined, said?.head !== undefined];
    return { ...symbol, parts, saidLabel, saidHead, said: saidLabel };
  });
  const before = chosen()?.parts.join(); // numbers change with new ink
  reading = { ...found, symbols };
  the("text").textContent = found.text;
  the("latex").textContent = found.latex;
  the("doubts").textContent = found.doubts.join("; ");
  const few = symbols.length === 1 ? "1 symbol" : `${symbols.length} symbols`;
  the("paper").setAttribute("aria-label", symbols.length ? `Written: ${found.text}` : "Nothing is written yet");
  if (aloud) say(symbols.length ? `${few}; ${expected(found)}` : "Ready.");
  tree.chosen = symbols.find((symbol) => symbol.parts.join() === before)?.number ?? 0;
  redraw();
  enable();
  edit();
  document.body.dataset.read = ids.length; // number of parts of the displayed result
  clearTimeout(idle);
  idle = setTimeout(follow, symbols.length ? IDLE : 0);
}

const expected = ({ expected_loss: loss }) => loss === undefined ? "read."
  : `${loss.toFixed(1)} wrong heads are expected.`;

function redraw() {
  paper.show(reading.symbols, tree.chosen);
  tree.show(reading.symbols, steps.current);
}

/** Request and show the steps of the parse. */
async function follow() {
  if (!reading.symbols.length) return steps.show([], []);
  const [of, { confirmed }] = [reading, store];
  const outdated = () => of !== reading || asking || confirmed !== store.confirmed; // newer steps will follow
  try {
    const found = await askFor("steps", store.request({ confirmed }));
    if (outdated()) return;
    steps.show(found.steps, reading.symbols.map((symbol) => symbol.label));
    document.body.dataset.followed = `${document.body.dataset.read} ${confirmed ? "confirmed" : "open"}`;
  } catch (error) {
    if (outdated()) return;
    say(error.message, true);
    if (!refused(error)) idle = setTimeout(follow, AGAIN);
    else if (confirmed) {
      store.confirm(false); // the heads are not a tree
      the("refusal").textContent = error.message;
    }
  }
}

function enable() {
  const some = reading.symbols.length > 0;
  const whole = some && !asking; // only a displayed result can be confirmed
  for (const kind of ["inkml", "png", "json", "latex"]) the(`save-${kind}`).disabled = !some;
  the("copy").disabled = !some;
  the("confirm").disabled = !whole;
  the("confirm").setAttribute("aria-pressed", store.confirmed);
  the("keep").disabled = !whole || !store.confirmed;
  the("undo").disabled = !store.canUndo;
  the("redo").disabled = !store.canRedo;
  the("clear").disabled = store.isEmpty;
}

store.addEventListener("change", () => { the("refusal").textContent = ""; read(); enable(); });
store.addEventListener("confirm", () => { the("refusal").textContent = ""; enable(); follow(); });
steps.addEventListener("go", redraw);

// Corrections.

const chosen = () => reading.symbols[tree.chosen - 1];

/** Show the form of the selected symbol. */
function edit() {
  const symbol = chosen();
  the("symbol").hidden = !symbol;
  if (!symbol) return;
  the("symbol-title").textContent = `Symbol ${symbol.number}`;
  if (document.activeElement !== the("label")) the("label").value = symbol.label;
  const others = reading.symbols.filter((one) => one.number !== symbol.number);
  const options = others.map((one) => make("option", { value: one.number, text: `${one.number}: ${one.label}` }));
  the("head").replaceChildren(make("option", { value: 0, text: "ROOT" }), ...options);
  the("head").value = symbol.head;
  the("join").disabled = symbol.number === reading.symbols.length;
  the("split").disabled = store.parts.filter((part) => symbol.parts.includes(part.id)).flatMap((part) => part.strokes).length < 2;
  the("forget").disabled = !symbol.saidLabel && !symbol.saidHead;
  const heard = [
    symbol.saidLabel && symbol.read_as !== symbol.label && `read as ${symbol.read_as}`,
    symbol.saidHead && symbol.read_head !== symbol.head && `read with head ${symbol.read_head || "ROOT"}`,
  ];
  the("symbol-said").textContent = heard.filter(Boolean).join(", ");
}

function setHead(number, head) {
  const symbol = reading.symbols[number - 1];
  store.say(symbol.parts, { head: head ? reading.symbols[head - 1].parts : [] });
}

function setLabel() {
  const [symbol, label] = [chosen(), the("label").value.trim()];
  if (!symbol || !label || label === symbol.label) return;
  if (new TextEncoder().encode(label).length > LONGEST) return say(`${label} is too long for a label: ${LONGEST} bytes at most.`, true);
  store.say(symbol.parts, { label });
}

tree.addEventListener("choose", () => { edit(); redraw(); });
tree.addEventListener("edit", () => { the("label").focus(); the("label").select(); });
tree.addEventListener("head", ({ detail }) => setHead(detail.number, detail.head));
the("label").addEventListener("change", setLabel);
the("head").addEventListener("change", () => setHead(tree.chosen, Number(the("head").value)));
the("join").addEventListener("click", () => store.join([...chosen().parts, ...reading.symbols[tree.chosen].parts]));
the("split").addEventListener("click", () => store.split(chosen().parts));
the("forget").addEventListener("click", () => store.forget(chosen().parts));
the("symbol").addEventListener("submit", (event) => event.preventDefault()); // the change event has set the label already
the("confirm").addEventListener("click", () => store.confirm(!store.confirmed));
the("keep").addEventListener("click", async () => {
  try {
    const seenTree = { labels: reading.symbols.map((one) => one.label), heads: reading.symbols.map((one) => one.head) };
    const { name, folder, kept } = await askFor("keep", store.request({ confirmed: true, seen: seenTree }));
    the("kept").textContent = `${kept} kept in ${folder}: aggrevated train reader --corrected-pages ${quoted(folder)}`;
    say(`Kept as ${name}.`);
  } catch (error) {
    say(error.message, true);
  }
});

/** Return the text quoted for a shell. */
const quoted = (text) => (/^[\w./~-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

// Tools, files and keys.

function use(erasing) {
  paper.erasing = erasing;
  the("paper").classList.toggle("erasing", erasing);
  the("pen").setAttribute("aria-pressed", !erasing);
  the("eraser").setAttribute("aria-pressed", erasing);
}

async function open(file) {
  if (!file) return;
  say(`Looking at ${file.name} …`);
  const [width, height] = paper.size;
  const headers = { "x-name": encodeURIComponent(file.name), "content-type": "application/octet-stream" };
  try {
    const found = await (await ask(`look?width=${width}&height=${height}`, { body: file, headers })).json();
    store.replace(found);
  } catch (error) {
    say(error.message, true);
  }
}

async function save(kind) {
  try {
    if (kind === "inkml") download("algebra.inkml", await (await inkml()).blob());
    if (kind === "png") download("algebra.png", await asPicture(store.parts));
    if (kind === "json") download("algebra.json", JSON.stringify(reading, null, 1), "application/json");
    if (kind === "latex") download("algebra.tex", `${reading.latex.replaceAll("\n", " \\\\\n")}\n`, "text/plain");
    say(`Saved as ${kind === "latex" ? "LaTeX" : kind.toUpperCase()}.`);
  } catch (error) {
    say(error.message, true);
  }
}

const inkml = () => ask("inkml", {
  body: JSON.stringify(store.request({ confirmed: store.confirmed })), headers: { "content-type": "application/json" },
});

the("pen").addEventListener("click", () => use(false));
the("eraser").addEventListener("click", () => use(true));
the("undo").addEventListener("click", () => store.undo());
the("redo").addEventListener("click", () => store.redo());
the("clear").addEventListener("click", () => store.clear());
the("open").addEventListener("click", () => the("file").click());
the("file").addEventListener("change", () => { open(the("file").files[0]); the("file").value = ""; });
the("example").addEventListener("click", async () => {
  const [width, height] = paper.size;
  try {
    store.replace(await askFor(`example?seed=${example++}&width=${width}&height=${height}`));
  } catch (error) {
    say(error.message, true);
  }
});
the("copy").addEventListener("click", () => copy(reading.latex));
for (const kind of ["inkml", "png", "json", "latex"]) the(`save-${kind}`).addEventListener("click", () => save(kind));

addEventListener("dragover", (event) => { event.preventDefault(); the("sheet").classList.add("dropping"); });
addEventListener("dragleave", () => the("sheet").classList.remove("dropping"));
addEventListener("drop", (event) => {
  event.preventDefault();
  the("sheet").classList.remove("dropping");
  open(event.dataTransfer.files[0]);
});
addEventListener("paste", (event) => open([...(event.clipboardData?.files ?? [])][0]));
addEventListener("keydown", (event) => {
  if (event.target.closest("input:not([type=range])")) return; // text fields
  const key = event.key.toLowerCase();
  if ((event.ctrlKey || event.metaKey) && key === "z") {
    event.preventDefault();
    (event.shiftKey ? store.redo() : store.undo());
  } else if (event.ctrlKey || event.metaKey || event.altKey) return;
  else if (key === "p") use(false);
  else if (key === "e") use(true);
});

async function begin() {
  paper.draw();
  enable();
  try {
    const state = await askFor("state");
    the("labels").replaceChildren(...state.labels.map((label) => make("option", { value: label })));
    if (state.kept) the("kept").textContent = `${state.kept} kept in ${state.folder}`;
    say("Ready.");
    read();
  } catch (error) {
    say(error.message, true);
    setTimeout(begin, AGAIN);
  }
}

begin();
