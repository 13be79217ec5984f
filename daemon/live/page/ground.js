// What lies under the vehicles: land and borders, the grid, the scale, areas of interference, and the trails of the last minute or two.

import { EARTH, eastOf, latOf, lonOf, northOf, stretch, WORLD_M } from './fleet.js';
import { fonts, palette } from './palette.js';
import { NM_M } from './units.js';

const STEPS_DEG = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001];
export const TRAIL_S = 100;
// Line segments that all trails together may have: a full sky gets shorter, coarser ones.
const SEGMENTS = 9000;
const NO_PLACE = -1e9;

/**
 * Paint everything below the vehicles. `areas`: {lat, lon, radius_km}.
 * @type {(pen: Pen, view: View, world: World, base: BaseMap, trail: Trail, areas: Area[]) => void}
 */
export function drawGround(pen, view, world, base, trail, areas) {
  pen.clearRect(0, 0, view.width, view.height);
  if (world === EARTH) {
    base.draw(pen, view);
    graticule(pen, view);
    for (const area of areas) interference(pen, view, area);
  } else {
    squares(pen, view);
  }
  trails(pen, view, world, trail);
  scaleBar(pen, view, world);
}

/** @type {(pen: Pen, view: View) => void} */
function graticule(pen, view) {
  const degree_px = eastOf(1) * view.scale;
  const step = STEPS_DEG.findLast((s) => s * degree_px >= 90) ?? STEPS_DEG[0];
  const digits = step >= 1 ? 0 : step >= 0.1 ? 1 : step >= 0.01 ? 2 : 3;
  const half = view.width / 2 / view.scale;
  const [west, east] = [lonOf(view.x - half), lonOf(view.x + half)];
  const [south, north] = [latOf(view.worldY(view.height)), latOf(view.worldY(0))];
  pen.lineWidth = 1;
  pen.strokeStyle = palette.grid;
  pen.fillStyle = palette['grid-text'];
  pen.font = `10.5px ${fonts.text}`;
  pen.textBaseline = 'alphabetic';
  pen.beginPath();
  for (let lon = Math.ceil(Math.max(west, view.x * 360 / WORLD_M - 180) / step) * step; lon <= east; lon += step) {
    const x = Math.round(view.width / 2 + (eastOf(lon) - view.x) * view.scale) + 0.5;
    pen.moveTo(x, 0);
    pen.lineTo(x, view.height);
    const wrapped = lon - 360 * Math.round(lon / 360);
    pen.fillText(`${Math.abs(wrapped).toFixed(digits)}°${side(wrapped, 'W', 'E')}`, x + 4, 12);
  }
  for (let lat = Math.ceil(south / step) * step; lat <= north; lat += step) {
    const y = Math.round(view.py(northOf(lat))) + 0.5;
    pen.moveTo(0, y);
    pen.lineTo(view.width, y);
    if (y > 64) pen.fillText(`${Math.abs(lat).toFixed(digits)}°${side(lat, 'S', 'N')}`, 6, y - 4);
  }
  pen.stroke();
}

/** The letter of a half of the globe; the equator and the meridian of Greenwich have none.
 * @type {(deg: number, below: string, above: string) => string}
 */
const side = (deg, below, above) => (Math.abs(deg) < 1e-9 ? '' : deg < 0 ? below : above);

/** @type {(pen: Pen, view: View) => void} */
function squares(pen, view) {
  const step = nice(90 / view.scale);
  pen.lineWidth = 1;
  pen.strokeStyle = palette.grid;
  pen.fillStyle = palette['grid-text'];
  pen.font = `10.5px ${fonts.text}`;
  pen.beginPath();
  for (let x = Math.ceil(view.worldX(0) / step) * step; x <= view.worldX(view.width); x += step) {
    const px = Math.round(view.px(x)) + 0.5;
    pen.moveTo(px, 0);
    pen.lineTo(px, view.height);
    pen.fillText(`${short(x)} m E`, px + 4, 12);
  }
  for (let y = Math.ceil(view.worldY(view.height) / step) * step; y <= view.worldY(0); y += step) {
    const py = Math.round(view.py(y)) + 0.5;
    pen.moveTo(0, py);
    pen.lineTo(view.width, py);
    if (py > 64) pen.fillText(`${short(y)} m N`, 6, py - 4);
  }
  pen.stroke();
}

/** @type {(x: number) => string} */
const short = (x) => (Math.abs(x) < 1e-9 ? '0' : String(Math.round(x * 1000) / 1000));

/**
 * The nearest of 1, 2, 5 × 10^n from above.
 * @type {(x: number) => number}
 */
function nice(x) {
  const ten = 10 ** Math.floor(Math.log10(x));
  return ten * ([1, 2, 5].find((n) => n * ten >= x) ?? 10);
}

/** @type {(pen: Pen, view: View, area: Area) => void} */
function interference(pen, view, { lat, lon, radius_km }) {
  const y = northOf(lat);
  const r = radius_km * 1000 * stretch(y) * view.scale;
  const [x0, y0] = [view.px(eastOf(lon)), view.py(y)];
  pen.beginPath();
  pen.arc(x0, y0, Math.max(r, 6), 0, 2 * Math.PI);
  pen.globalAlpha = 0.09;
  pen.fillStyle = palette.caution;
  pen.fill();
  pen.globalAlpha = 0.8;
  pen.setLineDash([6, 5]);
  pen.strokeStyle = palette.caution;
  pen.lineWidth = 1.2;
  pen.stroke();
  pen.setLineDash([]);
  pen.globalAlpha = 1;
}

let lastX = new Float32Array(0);
let lastY = new Float32Array(0);

/**
 * From the newest picture backwards: one path per picture, paler with age.
 * @type {(pen: Pen, view: View, world: World, trail: Trail) => void}
 */
function trails(pen, view, world, { times, picture }) {
  if (times.length < 2) return;
  const newest = picture(0);
  const local = world === EARTH ? 0 : 1;
  const steps = Math.max(2, Math.min(24, Math.floor(SEGMENTS / Math.max(newest.rows, 1))));
  const spacing = TRAIL_S / steps;
  const slots = newest.columns.slot.length ? newest.columns.slot[newest.columns.slot.length - 1] + 1 : 0;
  if (lastX.length < slots) [lastX, lastY] = [new Float32Array(2 * slots), new Float32Array(2 * slots)];
  lastX.fill(NO_PLACE);
  pen.strokeStyle = palette.muted;
  pen.lineWidth = 1.2;
  const [last] = times;
  let next = last;
  for (let i = 0; i < times.length && last - times[i] <= TRAIL_S; i++) {
    if (times[i] > next) continue;
    next = times[i] - spacing;
    pen.globalAlpha = 0.55 * (1 - (last - times[i]) / TRAIL_S) + 0.04;
    pen.beginPath();
    trace(pen, view, i ? picture(i) : newest, local);
    pen.stroke();
  }
  pen.globalAlpha = 1;
}

/** @type {(pen: Pen, view: View, picture: Picture, local: number) => void} */
function trace(pen, view, { columns, rows }, local) {
  const { slot, x, y, frame } = columns;
  for (let i = 0; i < rows; i++) {
    const s = slot[i];
    if ((frame[i] === 2 ? 1 : 0) !== local || s >= lastX.length) continue;
    const px = view.px(local ? x[i] / 100 : eastOf(x[i] * 1e-7));
    if (px < -200 || px > view.width + 200) {
      lastX[s] = NO_PLACE;
      continue;
    }
    const py = view.py(local ? y[i] / 100 : northOf(y[i] * 1e-7));
    if (lastX[s] !== NO_PLACE) {
      pen.moveTo(lastX[s], lastY[s]);
      pen.lineTo(px, py);
    }
    lastX[s] = px;
    lastY[s] = py;
  }
}

/** @type {(pen: Pen, view: View, world: World) => void} */
function scaleBar(pen, view, world) {
  const metre_px = world === EARTH ? view.scale * stretch(view.y) : view.scale;
  // close to the ground miles are no use
  const unit = world === EARTH && metre_px * NM_M < 4000 ? NM_M : 1;
  const length = nice(90 / (metre_px * unit));
  const px = length * unit * metre_px;
  const [x, y] = [view.width - 16 - px, view.height - 76];
  pen.strokeStyle = palette.muted;
  pen.fillStyle = palette.muted;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(x, y - 5);
  pen.lineTo(x, y);
  pen.lineTo(x + px, y);
  pen.lineTo(x + px, y - 5);
  pen.stroke();
  pen.font = `11px ${fonts.text}`;
  pen.textAlign = 'center';
  pen.fillText(unit === NM_M ? `${short(length)} NM` : `${short(length)} m`, x + px / 2, y - 7);
  pen.textAlign = 'start';
}
