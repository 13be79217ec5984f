// How far the receiver hears: the farthest aircraft in each direction from its site, seen by this page so far.

import { ADSB, EARTH, stretch } from './fleet.js';
import { palette } from './palette.js';

const SECTORS = 72;

export class Range {
  constructor() {
    /** @type {Point | null} */
    this.site = null;
    this.far = new Float64Array(SECTORS);
    this.x = new Float64Array(SECTORS);
    this.y = new Float64Array(SECTORS);
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
      if (d > this.far[sector]) [this.far[sector], this.x[sector], this.y[sector]] = [d, fleet.wx[i], fleet.wy[i]];
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
    for (let i = 0; i < SECTORS; i++) if (this.far[i]) pen.lineTo(view.px(this.x[i]), view.py(this.y[i]));
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
