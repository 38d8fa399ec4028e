// The tree to play with: asks the server for a game, and shows the episode that is looked at.

import { askFor, say, the } from "./common.js";
import { Player } from "./player.js";
import { sign } from "./scales.js";
import { Curves } from "./tree-curves.js";
import { Settings } from "./tree-settings.js";
import { LearnerView } from "./tree-tree.js";

const AGAIN = 1500; // milliseconds until a server that does not answer is asked again

const settings = new Settings();
const player = new Player({ step: "episode", speed: () => Number(the("speed").value), said: "said" });
const curves = new Curves();
const views = ["EG", "FTL", "UCB"].map((name) => new LearnerView(name, sign(name.toLowerCase())));
let game = null;
let asked = 0; // how many games were asked for; only the newest is shown

async function play() {
  const [number, values] = [++asked, settings.values];
  try {
    const found = await askFor("game", values);
    if (number === asked) show(found);
  } catch (error) {
    if (number !== asked) return;
    say(error.message, true);
    if (error.offline) setTimeout(() => number === asked && play(), AGAIN);
  }
}

function show(found) {
  game = found;
  views.forEach((view, place) => view.begin(game, game.learners[place]));
  curves.begin(game);
  const atEnd = player.at > 0 && player.at === player.end; // who looks at the end stays there
  player.pause();
  player.begin(game.settings.episodes, atEnd ? game.settings.episodes : player.at);
  document.body.dataset.game = JSON.stringify(game.settings);
  say("Ready.");
}

player.addEventListener("go", () => {
  if (!game) return;
  for (const view of views) view.show(player.at);
  curves.show(player.at);
  the("said").textContent = game.sentences[player.at];
  document.body.dataset.at = player.at;
});
curves.addEventListener("point", ({ detail }) => player.stopAt(detail));
settings.addEventListener("change", play);
player.listen();
new ResizeObserver(() => {
  if (!game) return;
  for (const view of views) if (view.svg.clientWidth !== view.width) view.draw();
  if (curves.svg.clientWidth !== curves.width) curves.draw();
}).observe(the("learners"));

async function begin() {
  try {
    settings.values = await askFor("state");
    await play();
  } catch (error) {
    say(error.message, true);
    setTimeout(begin, AGAIN);
  }
}

the("learners").append(...views.map((view) => view.element));
begin();
