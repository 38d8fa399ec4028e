// Where we are among the episodes: played at some speed, or step by step, by buttons, slider and keys.

import { still, the } from "./common.js";

export class Player extends EventTarget {
  #at = 0;
  #end = 0;
  #frame = null;

  constructor() {
    super();
    the("first").addEventListener("click", () => this.stopAt(0));
    the("back").addEventListener("click", () => this.stopAt(this.#at - 1));
    the("next").addEventListener("click", () => this.stopAt(this.#at + 1));
    the("last").addEventListener("click", () => this.stopAt(this.#end));
    the("play").addEventListener("click", () => this.toggle());
    the("at").addEventListener("input", () => this.stopAt(Number(the("at").value)));
    addEventListener("keydown", (event) => this.#key(event));
  }

  get at() {
    return this.#at;
  }

  /** So many episodes; who looks at the end stays there. */
  begin(episodes) {
    const atEnd = this.#at > 0 && this.#at === this.#end;
    this.#end = episodes;
    the("at").max = episodes;
    this.stopAt(atEnd ? episodes : this.#at);
  }

  stopAt(episode) {
    this.#pause();
    this.#go(episode);
  }

  toggle() {
    if (this.#frame !== null) return this.stopAt(this.#at); // said once more, aloud
    if (this.#at === this.#end) this.#go(0);
    if (still.matches) return this.#go(this.#at + 1); // who wants no motion goes step by step
    the("play").textContent = "Pause";
    the("said").setAttribute("aria-live", "off"); // nobody can listen that fast
    let [before, share] = [performance.now(), 0];
    const next = (now) => {
      share += ((now - before) / 1000) * Number(the("speed").value);
      before = now;
      const steps = Math.floor(share);
      share -= steps;
      this.#frame = requestAnimationFrame(next);
      if (steps) this.#go(this.#at + steps);
      if (this.#at === this.#end) this.#pause();
    };
    this.#frame = requestAnimationFrame(next);
  }

  #pause() {
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
    the("play").textContent = "Play";
    the("said").setAttribute("aria-live", "polite");
  }

  #go(episode) {
    this.#at = Math.min(Math.max(0, episode), this.#end);
    the("at").value = this.#at;
    the("at").setAttribute("aria-valuetext", `episode ${this.#at} of ${this.#end}`);
    for (const id of ["first", "back"]) the(id).disabled = this.#at === 0;
    for (const id of ["next", "last"]) the(id).disabled = this.#at === this.#end;
    this.dispatchEvent(new Event("go"));
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
    if (event.key === " " && event.target.closest("button, .scroll")) return; // it means that there
    const does = {
      " ": () => this.toggle(),
      ArrowLeft: () => this.stopAt(this.#at - 1),
      ArrowRight: () => this.stopAt(this.#at + 1),
      Home: () => this.stopAt(0),
      End: () => this.stopAt(this.#end),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }
}
