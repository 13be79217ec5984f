// The vehicles of the picture that is shown: where they are, and where they will be until the next one comes.

import { rowOf } from './history.js';

/** @type {World} */
export const EARTH = 'earth';
/** @type {World} */
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
/** @type {(lon: number) => number} */
export const eastOf = (lon) => RADIUS_M * lon * RAD;
/** @type {(lat: number) => number} */
export const northOf = (lat) => {
  const s = Math.sin(Math.max(-LAT_MAX, Math.min(LAT_MAX, lat)) * RAD);
  return RADIUS_M * 0.5 * Math.log((1 + s) / (1 - s));
};
/** @type {(north: number) => number} */
export const latOf = (north) => (2 * Math.atan(Math.exp(north / RADIUS_M)) - Math.PI / 2) / RAD;
/** @type {(east: number) => number} */
export const lonOf = (east) => east / RADIUS_M / RAD;
/**
 * How much larger than life Mercator draws at this height of the map.
 * @type {(north: number) => number}
 */
export const stretch = (north) => Math.cosh(north / RADIUS_M);

/** Who is meant by a slot: those of now, as they become known, or those of a picture of the past, which brings its own. */
export class Names {
  constructor() {
    /** @type {Map<number, { id: string, callsign: string }>} by slot */
    this.ids = new Map();
    /** @type {Map<string, number>} by id */
    this.slots = new Map();
  }

  /**
   * Names, as they become known; an empty id frees its slot.
   * @type {(names: Roster) => void}
   */
  take({ reset, slots, ids, callsigns }) {
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
}

export class Fleet {
  // places on the map [m], velocities there [m/s], the time they are of, and which world they are in, by row
  wx = new Float64Array(0);
  wy = new Float64Array(0);
  vx = new Float64Array(0);
  vy = new Float64Array(0);
  since = new Float64Array(0);
  world = new Uint8Array(0);
  room = 0;

  constructor() {
    /** Names of now, and those of the picture that is shown. */
    this.live = new Names();
    this.names = this.live;
    /** @type {Picture | null} */
    this.picture = null;
    this.count = { earth: 0, local: 0 };
    this.rows = 0;
    // how many times as fast as it happened, at least 1
    this.pace = 1;
    this.reserve(256);
  }

  /** @type {(rows: number) => void} */
  reserve(rows) {
    this.room = rows;
    this.wx = new Float64Array(rows);
    this.wy = new Float64Array(rows);
    this.vx = new Float64Array(rows);
    this.vy = new Float64Array(rows);
    this.since = new Float64Array(rows);
    this.world = new Uint8Array(rows);
  }

  get ids() { return this.names.ids; }
  get slots() { return this.names.slots; }

  /**
   * Show this picture: places on the map and velocities there, once; nothing is allocated while it is drawn.
   * @type {(picture: Picture) => void}
   */
  show(picture) {
    this.picture = picture;
    this.names = this.live;
    if (picture.roster) {
      this.names = new Names();
      this.names.take(picture.roster);
    }
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
      this.since[i] = (picture.t ?? NaN) - age[i];
    }
  }

  /** @type {(slot: number) => number} */
  row(slot) {
    return this.picture ? rowOf(this.picture.columns.slot, slot) : -1;
  }

  /** @type {(id: string | null) => number} */
  rowOfId(id) {
    const slot = id === null ? undefined : this.slots.get(id);
    return slot === undefined ? -1 : this.row(slot);
  }

  /**
   * Seconds that a row is carried on at time t.
   * @type {(row: number, t: number) => number}
   */
  ahead(row, t) {
    return Math.max(0, Math.min(AHEAD_S * this.pace, t - this.since[row]));
  }

  /**
   * Seconds without a report, as somebody who looks at it feels them: between two pictures of a log that is played
   * sixty times as fast a minute goes by, and nobody was silent.
   * @type {(row: number, t: number) => number}
   */
  silence(row, t) {
    const drawn = this.picture?.t ?? NaN;
    return drawn - this.since[row] + Math.max(0, t - drawn) / this.pace;
  }

  /** @type {(row: number, t: number) => number} */
  x(row, t) { return this.wx[row] + this.vx[row] * this.ahead(row, t); }
  /** @type {(row: number, t: number) => number} */
  y(row, t) { return this.wy[row] + this.vy[row] * this.ahead(row, t); }

  /** @type {(row: number) => { id: string, callsign: string } | undefined} */
  who(row) {
    return this.picture ? this.ids.get(this.picture.columns.slot[row]) : undefined;
  }

  /** @type {(row: number) => string} */
  name(row) {
    const who = this.who(row);
    return who ? who.callsign || who.id : '';
  }

  /** @type {(row: number) => string} */
  id(row) {
    return this.who(row)?.id ?? '';
  }

  /** @type {(row: number) => World} */
  worldOf(row) {
    return this.world[row] ? LOCAL : EARTH;
  }
}
