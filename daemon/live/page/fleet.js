// The vehicles of the picture that is shown: where they are, and where they will be until the next one comes.

import { rowOf } from './history.js';

export const EARTH = 'earth';
export const LOCAL = 'local';
export const ADSB = 0;
const LOCAL_FRAME = 2;
const RADIUS_M = 6378137;
export const WORLD_M = 2 * Math.PI * RADIUS_M;
// Mercator ends where it would become taller than wide.
const LAT_MAX = 85.05;
// Carried on by its last speed for so long after its report, then it stands still.
const AHEAD_S = 12;

const RAD = Math.PI / 180;
export const eastOf = (lon) => RADIUS_M * lon * RAD;
export const northOf = (lat) => {
  const s = Math.sin(Math.max(-LAT_MAX, Math.min(LAT_MAX, lat)) * RAD);
  return RADIUS_M * 0.5 * Math.log((1 + s) / (1 - s));
};
export const latOf = (north) => (2 * Math.atan(Math.exp(north / RADIUS_M)) - Math.PI / 2) / RAD;
export const lonOf = (east) => east / RADIUS_M / RAD;
/** How much larger than life Mercator draws at this height of the map. */
export const stretch = (north) => Math.cosh(north / RADIUS_M);

export class Fleet {
  constructor() {
    this.ids = new Map();
    this.slots = new Map();
    this.picture = null;
    this.rows = 0;
    this.reserve(256);
  }

  reserve(rows) {
    this.room = rows;
    for (const name of ['wx', 'wy', 'vx', 'vy', 'since']) this[name] = new Float64Array(rows);
    this.world = new Uint8Array(rows);
  }

  /** Names, as they become known; an empty id frees its slot. */
  roster({ reset, slots, ids, callsigns }) {
    if (reset) {
      this.ids.clear();
      this.slots.clear();
    }
    slots.forEach((slot, i) => {
      const before = this.ids.get(slot);
      if (before) this.slots.delete(before.id);
      if (ids[i]) {
        this.ids.set(slot, { id: ids[i], callsign: callsigns[i] });
        this.slots.set(ids[i], slot);
      } else {
        this.ids.delete(slot);
      }
    });
  }

  /** Show this picture: places on the map and velocities there, once; nothing is allocated while it is drawn. */
  show(picture) {
    this.picture = picture;
    this.rows = picture.rows;
    if (this.rows > this.room) this.reserve(2 * this.rows);
    const { x, y, speed_mps: speed, track_deg: track, age_s: age, frame } = picture.columns;
    this.count = { earth: 0, local: 0 };
    for (let i = 0; i < this.rows; i++) {
      const local = frame[i] === LOCAL_FRAME;
      const grown = local ? 1 : stretch(this.wy[i] = northOf(y[i] * 1e-7));
      if (local) {
        this.wy[i] = y[i] / 100;
        this.wx[i] = x[i] / 100;
        this.count.local++;
      } else {
        this.wx[i] = eastOf(x[i] * 1e-7);
        this.count.earth++;
      }
      this.world[i] = local ? 1 : 0;
      const v = speed[i] * grown;
      const known = v === v && track[i] === track[i];
      this.vx[i] = known ? v * Math.sin(track[i] * RAD) : 0;
      this.vy[i] = known ? v * Math.cos(track[i] * RAD) : 0;
      this.since[i] = picture.t - age[i];
    }
  }

  row(slot) {
    return this.picture ? rowOf(this.picture.columns.slot, slot) : -1;
  }

  rowOfId(id) {
    const slot = this.slots.get(id);
    return slot === undefined ? -1 : this.row(slot);
  }

  /** Seconds that a row is carried on at time t. */
  ahead(row, t) {
    return Math.max(0, Math.min(AHEAD_S, t - this.since[row]));
  }

  x(row, t) { return this.wx[row] + this.vx[row] * this.ahead(row, t); }
  y(row, t) { return this.wy[row] + this.vy[row] * this.ahead(row, t); }

  name(row) {
    const who = this.ids.get(this.picture.columns.slot[row]);
    return who ? who.callsign || who.id : '';
  }

  id(row) {
    return this.ids.get(this.picture.columns.slot[row])?.id ?? '';
  }

  worldOf(row) {
    return this.world[row] ? LOCAL : EARTH;
  }
}
