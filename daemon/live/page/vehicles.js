// The vehicles on the map: their symbols, the frames around those with alarms, and the box that holds them all.

import { ADSB } from './fleet.js';
import { palette } from './palette.js';
import { DRONE, frameOf, PLANE, toneOf, toneOfRank } from './symbols.js';
import { shortWay } from './view.js';

// After so long without a report a symbol pales, and later is hollow.
const PALE_S = 6;
export const HOLLOW_S = 15;
// Drones fly so much lower than aircraft that their heights are stretched to share the colours.
const DRONE_STRETCH = 30;
const calm = matchMedia('(prefers-reduced-motion: reduce)');

/**
 * Everybody inside the map at time t.
 * @type {(pen: Pen, map: MapView, t: number) => void}
 */
export function drawSymbols(pen, map, t) {
  const { fleet } = map.app;
  if (!fleet.picture) return;
  const { alt_m, track_deg, frame } = fleet.picture.columns;
  const { x, y } = map.spots;
  for (let i = 0; i < fleet.rows; i++) {
    if (!map.inside(i)) continue;
    const age = fleet.silence(i, t);
    const aircraft = frame[i] === ADSB;
    const tone = map.rank[i] >= 0 ? toneOfRank(map.rank[i]) : toneOf(alt_m[i] * (aircraft ? 1 : DRONE_STRETCH));
    if (age > PALE_S) pen.globalAlpha = 0.6;
    map.symbols.draw(pen, aircraft ? PLANE : DRONE, age > HOLLOW_S ? 1 : 0, tone, track_deg[i], x[i], y[i]);
    if (age > PALE_S) pen.globalAlpha = 1;
  }
}

/**
 * A frame around each vehicle with an alarm; it pulses until the alarm is acknowledged.
 * @type {(pen: Pen, map: MapView, now: number) => void}
 */
export function drawMarks(pen, map, now) {
  const { rank, open, spots } = map;
  const breath = calm.matches ? 0 : 2 * Math.sin(now / 260);
  for (let i = 0; i < map.app.fleet.rows; i++) {
    if (rank[i] < 0 || !map.inside(i)) continue;
    pen.strokeStyle = palette[['advisory', 'caution', 'warning'][rank[i]]];
    pen.lineWidth = open[i] ? 1.8 : 1;
    pen.globalAlpha = open[i] ? 1 : 0.6;
    pen.beginPath();
    frameOf(pen, rank[i], spots.x[i], spots.y[i], open[i] ? 14 + breath : 13);
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

/**
 * The box (west, south, east, north) around all of a world that were heard lately; null without any.
 * @type {(fleet: Fleet, world: World, round: boolean) => Box | null}
 */
export function boundsOf(fleet, world, round) {
  if (!fleet.picture) return null;
  const { age_s } = fleet.picture.columns;
  /** @type {Box} */
  const box = [Infinity, Infinity, -Infinity, -Infinity];
  // around the first of them, so that a fleet across the date line is one fleet
  let first = NaN;
  for (let i = 0; i < fleet.rows; i++) {
    if (fleet.worldOf(i) !== world || age_s[i] > HOLLOW_S) continue;
    if (first !== first) first = fleet.wx[i];
    const x = first + shortWay(fleet.wx[i] - first, round);
    box[0] = Math.min(box[0], x);
    box[1] = Math.min(box[1], fleet.wy[i]);
    box[2] = Math.max(box[2], x);
    box[3] = Math.max(box[3], fleet.wy[i]);
  }
  return first === first ? box : null;
}
