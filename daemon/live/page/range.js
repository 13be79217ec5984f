// How far the receiver hears: the farthest aircraft in each direction from its site, seen by this page so far.

import { ADSB, EARTH, stretch } from './fleet.js';
import { palette } from './palette.js';

const SECTORS = 72;

export class Range {
  constructor() {
    /** @type {Point | null} */
    this.site = null;
    /** By direction, clockwise from north: the square of the distance, in metres of the map. */
    this.far = new Float64Array(SECTORS);
  }

  /**
   * Begin at this place, in metres of the map.
   * @type {(site: Point) => void}
   */
  begin(site) {
    this.site = site;
    this.far.fill(0);
  }

  /**
   * Aircraft of one more picture. Without a site the middle of the first fleet stands for it.
   * @type {(fleet: Fleet) => void}
   */
  take(fleet) {
    if (!fleet.picture) return;
    const { frame, age_s } = fleet.picture.columns;
    let [n, x, y] = [0, 0, 0];
    for (let i = 0; i < fleet.rows && !this.site; i++) {
      if (frame[i] === ADSB) [n, x, y] = [n + 1, x + fleet.wx[i], y + fleet.wy[i]];
    }
    if (n > 2) this.begin([x / n, y / n]);
    if (!this.site) return;
    const [sx, sy] = this.site;
    for (let i = 0; i < fleet.rows; i++) {
      if (frame[i] !== ADSB || age_s[i] > 15) continue;
      const [dx, dy] = [fleet.wx[i] - sx, fleet.wy[i] - sy];
      const d = dx * dx + dy * dy;
      const sector = Math.floor((Math.atan2(dx, dy) / (2 * Math.PI) + 1) * SECTORS) % SECTORS;
      this.far[sector] = Math.max(this.far[sector], d);
    }
  }

  /** @type {(pen: Pen, view: View, world: World) => void} */
  draw(pen, view, world) {
    if (!this.site || world !== EARTH) return;
    const [x, y] = [view.px(this.site[0]), view.py(this.site[1])];
    pen.strokeStyle = palette.accent;
    pen.lineWidth = 1.2;
    pen.globalAlpha = 0.7;
    pen.beginPath();
    // a slice for each direction: between directions where nothing was heard nothing is known
    for (let i = 0; i < SECTORS; i++) {
      const r = Math.sqrt(this.far[i]) * view.scale;
      const [from, to] = [(2 * i / SECTORS - 0.5) * Math.PI, (2 * (i + 1) / SECTORS - 0.5) * Math.PI];
      if (r) pen.arc(x, y, r, from, to);
      else pen.lineTo(x, y);
    }
    pen.closePath();
    pen.stroke();
    pen.globalAlpha = 0.06;
    pen.fillStyle = palette.accent;
    pen.fill();
    pen.globalAlpha = 1;
    pen.beginPath();
    pen.arc(x, y, 4, 0, 2 * Math.PI);
    pen.stroke();
  }

  /** The farthest of all, in metres. */
  get most() {
    return this.site ? Math.sqrt(Math.max(...this.far)) / stretch(this.site[1]) : 0;
  }
}
