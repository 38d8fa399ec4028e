// Asks what is new, once a second, while somebody looks; a server that is gone is asked until it is back.

import { askFor } from "./common.js";

const EVERY = 1000; // milliseconds

/** Calls `news` with what changed, and `trouble` with an Error or, once that is over, with null. */
export class Following {
  constructor(news, trouble) {
    Object.assign(this, { news, trouble, stamp: "", timer: null, asking: false });
    document.addEventListener("visibilitychange", () => this.look());
  }

  /** Ask now, unless nobody looks or it is asked already. */
  async look() {
    clearTimeout(this.timer);
    if (this.asking || document.hidden) return;
    this.asking = true;
    let wait = EVERY;
    try {
      const found = await askFor(`runs?since=${encodeURIComponent(this.stamp)}`);
      this.stamp = found.stamp;
      this.trouble(null);
      this.news(found);
      if (found.runs.some((run) => run.behind)) wait = 0; // there is more to read than was read
    } catch (error) {
      this.trouble(error);
    }
    this.asking = false;
    this.timer = setTimeout(() => this.look(), wait);
  }
}
