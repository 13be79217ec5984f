// Raster tiles of a map server that the configuration names (http.tiles), under everything else. Without one: nothing.

import { WORLD_M } from './fleet.js';

const TILE_PX = 256;
const ZOOM_MAX = 19;
const MOST = 160;

export class Tiles {
  /**
   * @param {string} address with {z}, {x} and {y}
   * @param {() => void} ready
   */
  constructor(address, ready) {
    this.address = address;
    this.ready = ready;
    /** Whether the server has refused one. */
    this.refused = false;
    /** @type {Map<string, HTMLImageElement>} the one used last at the end */
    this.images = new Map();
  }

  /**
   * Whether any tile was there to be drawn: a server that gives none leaves the built-in map.
   * @type {(pen: Pen, view: View) => boolean}
   */
  draw(pen, view) {
    if (!this.address) return false;
    let drawn = false;
    const zoom = Math.max(0, Math.min(ZOOM_MAX, Math.round(Math.log2(view.scale * WORLD_M / TILE_PX))));
    const n = 2 ** zoom;
    const size = WORLD_M / n;
    /** @type {(x: number) => number} */
    const column = (x) => Math.floor((x + WORLD_M / 2) / size);
    /** @type {(y: number) => number} */
    const line = (y) => Math.floor((WORLD_M / 2 - y) / size);
    for (let ty = Math.max(0, line(view.worldY(0))); ty <= Math.min(n - 1, line(view.worldY(view.height))); ty++) {
      for (let tx = column(view.worldX(0)); tx <= column(view.worldX(view.width)); tx++) {
        const image = this.image(zoom, ((tx % n) + n) % n, ty);
        if (!image.complete || !image.naturalWidth) continue;
        const [x, y] = [view.width / 2 + (tx * size - WORLD_M / 2 - view.x) * view.scale, view.py(WORLD_M / 2 - ty * size)];
        pen.drawImage(image, x, y, size * view.scale + 0.5, size * view.scale + 0.5);
        drawn = true;
      }
    }
    return drawn;
  }

  /** @type {(z: number, x: number, y: number) => HTMLImageElement} */
  image(z, x, y) {
    const key = `${z}/${x}/${y}`;
    const found = this.images.get(key) ?? new Image();
    this.images.delete(key);
    this.images.set(key, found);
    if (!found.src) {
      found.referrerPolicy = 'no-referrer';
      found.onload = this.ready;
      found.onerror = () => {
        this.refused = true;
        this.ready();
      };
      found.src = this.address.replace('{z}', String(z)).replace('{x}', String(x)).replace('{y}', String(y));
    }
    for (const [old] of this.images) {
      if (this.images.size <= MOST) break;
      this.images.delete(old);
    }
    return found;
  }
}
