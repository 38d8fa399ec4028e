// A player of steps: at some speed or step by step, with five buttons, a slider and keys.

import { still, the } from "./common.js";

/** Dispatches "go" at each new position from 0 to `end`. `step` is the name of a step, `speed()` the number of steps
 * per second, `said` the id of the element that describes the position. */
export class Player extends EventTarget {
  #at = 0;
  #end = 0;
  #frame = null;

  constructor({ step, speed, said }) {
    super();
    Object.assign(this, { step, speed, said: the(said) });
    the("first").addEventListener("click", () => this.stopAt(0));
    the("back").addEventListener("click", () => this.stopAt(this.#at - 1));
    the("next").addEventListener("click", () => this.stopAt(this.#at + 1));
    the("last").addEventListener("click", () => this.stopAt(this.#end));
    the("play").addEventListener("click", () => this.toggle());
    the("at").addEventListener("input", () => this.stopAt(Number(the("at").value)));
  }

  get at() {
    return this.#at;
  }

  get end() {
    return this.#end;
  }

  /** Start with another number of steps, at a position. */
  begin(end, at) {
    this.#end = end;
    the("at").max = end;
    this.#go(at);
  }

  stopAt(place) {
    this.pause();
    this.#go(place);
  }

  toggle() {
    if (this.#frame !== null) return this.stopAt(this.#at); // announces the position
    if (this.#at === this.#end) this.#go(0);
    if (still.matches) return this.#go(this.#at + 1); // with reduced motion, one step at a time
    the("play").textContent = "Pause";
    this.said.setAttribute("aria-live", "off"); // too fast for screen readers
    let [before, share] = [performance.now(), 0];
    const next = (now) => {
      share += Math.max(0, (now - before) / 1000) * this.speed();
      before = now;
      const steps = Math.floor(share);
      share -= steps;
      this.#frame = requestAnimationFrame(next);
      if (steps) this.#go(this.#at + steps);
      if (this.#at === this.#end) this.pause();
    };
    this.#frame = requestAnimationFrame(next);
  }

  pause() {
    cancelAnimationFrame(this.#frame);
    this.#frame = null;
    the("play").textContent = "Play";
    this.said.setAttribute("aria-live", "polite");
  }

  #go(place) {
    this.#at = Math.min(Math.max(0, place), this.#end);
    the("at").value = this.#at;
    the("at").setAttribute("aria-valuetext", `${this.step} ${this.#at} of ${this.#end}`);
    for (const id of ["first", "back"]) the(id).disabled = this.#at === 0;
    for (const id of ["next", "last"]) the(id).disabled = this.#at === this.#end;
    this.dispatchEvent(new Event("go"));
  }

  /** Listen to keys of the whole page where they have no other meaning. */
  listen() {
    addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select")) return;
      if (event.key === " " && event.target.closest("button, .scroll")) return; // it activates or scrolls there
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
    });
  }
}
