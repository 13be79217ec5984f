// Which part of a world the map shows: centre and scale, and the moves between them.

import { WORLD_M } from './fleet.js';

const GLIDE_MS = 350;
// Pixels per metre: from the whole Earth on a phone to a drone's rotor.
const SCALE_MIN = 3e-6;
const SCALE_MAX = 20;
/**
 * A difference of eastings: on the round Earth never more than half way round.
 * @type {(d: number, round: boolean) => number}
 */
export const shortWay = (d, round) => (round ? d - WORLD_M * Math.round(d / WORLD_M) : d);

const calm = matchMedia('(prefers-reduced-motion: reduce)');

export class View {
  /** @param {boolean} round */
  constructor(round) {
    this.round = round; // the Earth goes on at its edges, a local frame does not
    this.x = 0;
    this.y = 0;
    this.scale = round ? 1e-4 : 1;
    this.width = 1;
    this.height = 1;
    /** @type {{ from: [number, number, number], by: Point, scale: number, began: number } | null} */
    this.move = null;
    this.version = 0;
  }

  /** @type {(width: number, height: number) => void} */
  resize(width, height) {
    this.width = width;
    this.height = height;
    this.version++;
  }

  /**
   * Distance east of the centre, the short way round.
   * @type {(x: number) => number}
   */
  east(x) {
    return shortWay(x - this.x, this.round);
  }

  /** @type {(x: number) => number} */
  px(x) { return this.width / 2 + this.east(x) * this.scale; }
  /** @type {(y: number) => number} */
  py(y) { return this.height / 2 - (y - this.y) * this.scale; }
  /** @type {(px: number) => number} */
  worldX(px) { return this.x + (px - this.width / 2) / this.scale; }
  /** @type {(py: number) => number} */
  worldY(py) { return this.y - (py - this.height / 2) / this.scale; }

  /** @type {(x: number, y: number, scale: number) => void} */
  set(x, y, scale) {
    this.x = shortWay(x, this.round);
    this.y = this.round ? Math.max(-WORLD_M / 2, Math.min(WORLD_M / 2, y)) : y;
    this.scale = Math.max(SCALE_MIN, Math.min(SCALE_MAX, scale));
    this.version++;
  }

  /** @type {(dx: number, dy: number) => void} */
  pan(dx, dy) {
    this.move = null;
    this.set(this.x - dx / this.scale, this.y + dy / this.scale, this.scale);
  }

  /**
   * Zoom so that what is under this pixel stays there.
   * @type {(factor: number, px?: number, py?: number) => void}
   */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    this.move = null;
    const [x, y] = [this.worldX(px), this.worldY(py)];
    this.set(this.x, this.y, this.scale * factor);
    this.set(x - (px - this.width / 2) / this.scale, y + (py - this.height / 2) / this.scale, this.scale);
  }

  /**
   * Glide to a place.
   * @type {(x: number, y: number, scale?: number) => void}
   */
  go(x, y, scale = this.scale) {
    if (calm.matches) {
      this.set(x, y, scale);
      return;
    }
    this.move = { from: [this.x, this.y, this.scale], by: [this.east(x), y - this.y], scale, began: performance.now() };
  }

  /**
   * Show this box (west, south, east, north) with room around it, and not closer than is useful.
   * @type {(box: Box, how?: { margin?: number, most?: number, at_once?: boolean }) => void}
   */
  fit([west, south, east, north], { margin = 70, most = this.round ? 0.012 : 4, at_once = false } = {}) {
    const wide = Math.max(this.width - 2 * margin, 80);
    const high = Math.max(this.height - 2 * margin - 50, 80);
    const scale = Math.min(most, wide / Math.max(east - west, 1), high / Math.max(north - south, 1));
    const [x, y] = [(west + east) / 2, (south + north) / 2 - 25 / scale];
    if (at_once) this.set(x, y, scale); else this.go(x, y, scale);
  }

  /**
   * Go on with a glide, once per frame.
   * @type {(now: number) => void}
   */
  step(now) {
    if (!this.move) return;
    const { from, by, scale, began } = this.move;
    const part = Math.min(1, (now - began) / GLIDE_MS);
    const eased = 1 - (1 - part) ** 3;
    this.set(from[0] + by[0] * eased, from[1] + by[1] * eased, from[2] * (scale / from[2]) ** eased);
    if (part === 1) this.move = null;
  }
}
