// Vehicles that this person keeps an eye on: kept in the browser, by id.

const KEY = 'watchkeeper-watch';
const MOST = 500;

export class WatchList {
  constructor() {
    /** @type {Set<string>} */
    this.ids = new Set();
    try {
      const kept = JSON.parse(localStorage.getItem(KEY) ?? '[]');
      if (Array.isArray(kept)) this.ids = new Set(kept.filter((id) => typeof id === 'string').slice(0, MOST));
    } catch { /* a browser that keeps nothing begins with none */ }
  }

  /** @type {(id: string) => boolean} */
  has(id) { return this.ids.has(id); }

  /** @type {(id: string) => void} */
  toggle(id) {
    if (!this.ids.delete(id) && this.ids.size < MOST) this.ids.add(id);
    try { localStorage.setItem(KEY, JSON.stringify([...this.ids])); } catch { /* for this visit only */ }
  }
}
