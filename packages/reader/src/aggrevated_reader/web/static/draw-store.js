// The drawing and its corrections, stored in the tab so that a reload loses nothing; every change can be undone.
//
// A part is one piece of ink, {id, strokes: [[[x, y, pressure], …], …]}. A correction of a symbol is {parts, label,
// head}: parts and head are sorted ids of parts, the head of ROOT is []; label and head may be missing.

const PLACE = "aggrevated.drawing";
const MOST = 200; // changes that can be undone

export class Store extends EventTarget {
  #past = [];
  #future = [];
  #now = { parts: [], said: [], confirmed: false, next: 0 };

  constructor() {
    super();
    try {
      const kept = JSON.parse(sessionStorage.getItem(PLACE));
      if (kept && Array.isArray(kept.parts) && Array.isArray(kept.said)) this.#now = kept;
    } catch {
      // ignore a stored drawing that cannot be read
    }
  }

  get parts() { return this.#now.parts; }
  get said() { return this.#now.said; }
  get confirmed() { return this.#now.confirmed; }
  get canUndo() { return this.#past.length > 0; }
  get canRedo() { return this.#future.length > 0; }
  get isEmpty() { return this.#now.parts.length === 0; }

  /** Add a stroke of the pen. */
  write(stroke) {
    const { parts, next } = this.#now;
    this.#change({ parts: [...parts, { id: next, strokes: [stroke] }], next: next + 1, confirmed: false });
  }

  /** Remove these parts and the corrections of their symbols. */
  erase(ids) {
    const gone = new Set(ids);
    const parts = this.#now.parts.filter((part) => !gone.has(part.id));
    if (parts.length === this.#now.parts.length) return;
    const said = this.#now.said.filter((one) => !one.parts.some((id) => gone.has(id))).map((one) => without(one, gone));
    this.#change({ parts, said, confirmed: false });
  }

  clear() {
    this.#change({ parts: [], said: [], confirmed: false });
  }

  /** Replace the drawing; its corrections name parts by index. */
  replace({ parts, said = [], confirmed = false }) {
    const first = this.#now.next;
    const byId = (places) => places && places.map((place) => first + place);
    this.#change({
      parts: parts.map((strokes, place) => ({ id: first + place, strokes })),
      said: said.map((one) => ({ ...one, parts: byId(one.parts), head: byId(one.head) })),
      next: first + parts.length,
      confirmed,
    });
  }

  /** Correct the symbol with these parts; drop corrections of other symbols with some of the parts. */
  say(parts, what) {
    const known = this.#now.said.find((one) => same(one.parts, parts)) ?? { parts };
    this.#tell(parts, [{ ...known, ...what }]);
  }

  /** Drop the correction of the symbol with these parts. */
  forget(parts) {
    this.#tell(parts, []);
  }

  /** Join these parts to one symbol. */
  join(parts) {
    this.#tell([...parts].sort(byNumber), [{ parts: [...parts].sort(byNumber) }]);
  }

  /** Make each stroke of these parts a symbol. */
  split(ids) {
    const apart = new Set(ids);
    let next = this.#now.next;
    const pieces = [];
    const parts = this.#now.parts.flatMap((part) => {
      if (!apart.has(part.id)) return [part];
      const own = part.strokes.length === 1 ? [part] : part.strokes.map((stroke) => ({ id: next++, strokes: [stroke] }));
      pieces.push(...own);
      return own;
    });
    this.#now = { ...this.#now, next };
    this.#tell(ids, pieces.map((piece) => ({ parts: [piece.id] })), parts);
  }

  /** Set whether the displayed tree is confirmed; undo does not affect this. */
  confirm(confirmed) {
    this.#now = { ...this.#now, confirmed };
    this.#keep();
    this.dispatchEvent(new Event("confirm"));
  }

  undo() { this.#travel(this.#past, this.#future); }
  redo() { this.#travel(this.#future, this.#past); }

  /** Return the body of a request, in which corrections name parts by index. */
  request(more = {}) {
    const place = new Map(this.#now.parts.map((part, place) => [part.id, place]));
    const places = (ids) => ids && ids.map((id) => place.get(id));
    const said = this.#now.said.map((one) => ({ ...one, parts: places(one.parts), head: places(one.head) }));
    return { parts: this.#now.parts.map((part) => part.strokes), said, ...more };
  }

  /** Replace the corrections of these parts, and drop heads that are no longer symbols. */
  #tell(parts, told, ink = this.#now.parts) {
    const touched = new Set(parts);
    const known = new Set(told.map((one) => one.parts.join()));
    const others = this.#now.said.filter((one) => !one.parts.some((id) => touched.has(id)));
    const kept = others.map((one) => (one.head && known.has(one.head.join()) ? one : without(one, touched)));
    this.#change({ parts: ink, said: [...kept, ...told], confirmed: false });
  }

  #change(what) {
    this.#past = [...this.#past.slice(-MOST + 1), this.#now];
    this.#future = [];
    this.#now = { ...this.#now, ...what };
    this.#keep();
    this.dispatchEvent(new Event("change"));
  }

  #travel(from, to) {
    if (!from.length) return;
    to.push(this.#now);
    this.#now = { ...from.pop(), confirmed: false, next: this.#now.next };
    this.#keep();
    this.dispatchEvent(new Event("change"));
  }

  #keep() {
    try {
      sessionStorage.setItem(PLACE, JSON.stringify(this.#now));
    } catch {
      // a drawing that is too large to store lasts until the tab is closed
    }
  }
}

const byNumber = (a, b) => a - b;
const same = (a, b) => a.length === b.length && a.every((id, place) => id === b[place]);

/** Return the correction without a head that has been removed. */
function without(one, gone) {
  if (!one.head || !one.head.some((id) => gone.has(id))) return one;
  const { head, ...rest } = one;
  return rest;
}
