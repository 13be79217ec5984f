// What lies under the tracks: a grid with its coordinates, and the scale.

import { report } from './data.js';
import { fonts, palette } from '../../live/page/palette.js';
import { NM_M } from '../../live/page/units.js';

const STEPS_DEG = [30, 10, 5, 2, 1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002, 0.0001, 0.00005, 0.00002, 0.00001];

/**
 * The nearest of 1, 2, 5 × 10^n from above.
 * @type {(x: number) => number}
 */
function round125(x) {
  const ten = 10 ** Math.floor(Math.log10(x));
  return ten * ([1, 2, 5].find((n) => n * ten >= x) ?? 10);
}

/**
 * Lines east-west and north-south; `world` says in degrees or in metres.
 * @type {(pen: Pen, view: MapBox, earth: boolean) => void}
 */
export function grid(pen, view, earth) {
  pen.lineWidth = 1;
  pen.strokeStyle = palette.grid;
  pen.fillStyle = palette['grid-text'];
  pen.font = `10.5px ${fonts.text}`;
  pen.beginPath();
  const [lat0, lon0] = report.middle ?? [0, 0];
  const degree = report.degree_m;
  const across = degree * Math.cos(lat0 * Math.PI / 180);
  for (const [unit_m, origin, along] of earth ? [[across, lon0, 'E'], [degree, lat0, 'N']] : [[1, 0, 'E'], [1, 0, 'N']]) {
    const east = along === 'E';
    const [unit, zero] = [Number(unit_m), Number(origin)];
    const step = earth ? STEPS_DEG.findLast((s) => s * unit * view.scale >= 90) ?? STEPS_DEG[0] : round125(90 / view.scale);
    const [from, to] = (east ? [view.worldX(0), view.worldX(view.width)] : [view.worldY(view.height), view.worldY(0)]).map((m) => m / unit + zero);
    for (let v = Math.ceil(from / step) * step; v <= to; v += step) {
      const at = Math.round(east ? view.px((v - zero) * unit) : view.py((v - zero) * unit)) + 0.5;
      pen.moveTo(east ? at : 0, east ? 0 : at);
      pen.lineTo(east ? at : view.width, east ? view.height : at);
      const words = earth ? degrees(v, step, east) : `${Math.abs(Number(v.toPrecision(6)))} m ${v >= 0 ? along : east ? 'W' : 'S'}`;
      if (east) pen.fillText(words, at + 4, view.height - 6);
      else if (at > 14 && at < view.height - 24) pen.fillText(words, 6, at - 4);
    }
  }
  pen.stroke();
}

/** @type {(v: number, step: number, east: boolean) => string} */
function degrees(v, step, east) {
  const digits = Math.max(0, Math.ceil(-Math.log10(step) - 1e-9));
  const side = east ? (v < 0 ? 'W' : 'E') : (v < 0 ? 'S' : 'N');
  return `${Math.abs(v).toFixed(digits)}°${side}`;
}

/** @type {(pen: Pen, view: MapBox, nautical: boolean) => void} */
export function scaleBar(pen, view, nautical) {
  const unit = nautical ? NM_M : 1;
  const length = round125(110 / view.scale / unit);
  const wide = length * unit * view.scale;
  const [right, base] = [view.width - 16, view.height - 26];
  const words = nautical ? `${Number(length.toPrecision(3))} NM` : length >= 1000 ? `${length / 1000} km` : `${Number(length.toPrecision(3))} m`;
  pen.strokeStyle = palette.muted;
  pen.fillStyle = palette.muted;
  pen.lineWidth = 1.5;
  pen.beginPath();
  pen.moveTo(right - wide, base - 5);
  pen.lineTo(right - wide, base);
  pen.lineTo(right, base);
  pen.lineTo(right, base - 5);
  pen.stroke();
  pen.font = `11px ${fonts.text}`;
  pen.textAlign = 'center';
  pen.fillText(words, right - wide / 2, base - 6);
  pen.textAlign = 'left';
}
