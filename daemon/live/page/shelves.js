// The shelves: what is shelved, until when and why, as a list above the alarms and as circles on the map; each can be
// taken down.

import { ask, tell, whyNot } from './api.js';
import { announce, by, el, setText } from './dom.js';
import { EARTH, eastOf, northOf, stretch } from './fleet.js';
import { fonts, palette } from './palette.js';
import { NM_M, span } from './units.js';

// Shelves expire by the wall clock, without a word from the daemon while nothing else happens.
const AGAIN_MS = 20_000;

export class Shelves {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Shelf[]} */
    this.all = [];
    this.alarms = 0;
    setInterval(() => this.all.length && !document.hidden && this.refresh(), AGAIN_MS);
  }

  /** Ask what is shelved now. */
  async refresh() {
    try {
      /** @type {{ shelves: Shelf[], shelved_alarms: number }} */
      const found = await ask('/shelves');
      [this.all, this.alarms] = [found.shelves, found.shelved_alarms];
    } catch {
      // without a history nothing can be shelved
      this.all = [];
    }
    this.render();
    this.app.map.groundStale = true;
  }

  render() {
    const list = by('shelves');
    list.hidden = !this.all.length;
    setText(by('shelves-words'), `${this.all.length} ${this.all.length === 1 ? 'shelf' : 'shelves'}, ${this.alarms} active ${this.alarms === 1 ? 'alarm' : 'alarms'} on ${this.all.length === 1 ? 'it' : 'them'}`);
    by('shelves-list').replaceChildren(...this.all.map((shelf) => this.row(shelf)));
  }

  /** @type {(shelf: Shelf) => HTMLElement} */
  row(shelf) {
    const what = aboutOf(shelf);
    const down = el('button.small.take-down', { type: 'button', 'aria-label': `Take down: ${what}` }, 'Take down');
    down.onclick = () => this.takeDown(shelf.id);
    const more = [`${span(Math.max(0, shelf.t_expires_wall - Date.now() / 1000))} left`, shelf.by && `by ${shelf.by}`, shelf.reason].filter(Boolean).join(', ');
    const words = el('span', {}, el('b', {}, what), el('span.tag', {}, more));
    if (!shelf.area) return el('li', {}, words, down);
    const show = el('button.small', { type: 'button', 'aria-label': `Show on the map: ${what}` }, 'Show');
    show.onclick = () => this.show(shelf);
    return el('li', {}, words, el('span.acts', {}, show, down));
  }

  /** @type {(id: string) => Promise<void>} */
  async takeDown(id) {
    await tell(`/shelves/${encodeURIComponent(id)}`, {}, 'DELETE').then(() => announce('shelf taken down'), (error) => announce(whyNot(error)));
    await this.refresh();
    this.app.past.again();
  }

  /**
   * Bring an area into view.
   * @type {(shelf: Shelf) => void}
   */
  show({ area }) {
    if (!area) return;
    const [x, y] = [eastOf(area.lon), northOf(area.lat)];
    const r = area.radius_m * stretch(y);
    this.app.showWorld(EARTH);
    this.app.map.taken();
    this.app.map.view.fit([x - r, y - r, x + r, y + r]);
  }

  /** @type {(pen: Pen, view: View, world: World) => void} */
  draw(pen, view, world) {
    if (world !== EARTH) return;
    for (const { area, kind } of this.all) if (area) circle(pen, view, area, `shelved${kind ? `: ${kind.replaceAll('_', ' ')}` : ''}`);
  }
}

/**
 * A circle in which alarms are shelved, with its words below it.
 * @type {(pen: Pen, view: View, area: Circle, words: string) => void}
 */
export function circle(pen, view, { lat, lon, radius_m }, words) {
  const y = northOf(lat);
  const [x0, y0, r] = [view.px(eastOf(lon)), view.py(y), Math.max(radius_m * stretch(y) * view.scale, 6)];
  pen.save();
  pen.beginPath();
  pen.arc(x0, y0, r, 0, 2 * Math.PI);
  pen.fillStyle = pen.strokeStyle = palette.muted;
  pen.globalAlpha = 0.12;
  pen.fill();
  pen.globalAlpha = 0.9;
  pen.setLineDash([2, 4]);
  pen.lineWidth = 1.4;
  pen.stroke();
  pen.font = `11px ${fonts.text}`;
  pen.textAlign = 'center';
  pen.fillText(words, x0, y0 + r + 13);
  pen.restore();
}

/**
 * What a shelf is about, in words.
 * @type {(shelf: Shelf) => string}
 */
function aboutOf({ alarm, vehicle, pair, kind, area }) {
  const parts = [
    kind ? kind.replaceAll('_', ' ') : alarm ? 'one alarm' : 'all alarms', pair ? `of ${pair.join(' and ')}` : '', vehicle ? `of ${vehicle}` : '',
    area ? `within ${distance(area.radius_m)} of ${place(area)}` : '',
  ];
  return parts.filter(Boolean).join(' ');
}

/** @type {(m: number) => string} */
export const distance = (m) => (m < NM_M ? `${Math.round(m)} m` : `${(m / NM_M).toFixed(m < 10 * NM_M ? 1 : 0)} NM`);
/** @type {(area: Circle) => string} */
const place = ({ lat, lon }) => `${Math.abs(lat).toFixed(2)}°${lat < 0 ? 'S' : 'N'} ${Math.abs(lon).toFixed(2)}°${lon < 0 ? 'W' : 'E'}`;
