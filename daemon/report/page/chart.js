// One plot on a canvas: envelopes over the shared time, a limit, spans of alarms and modes behind them.

import { valuesOf } from './data.js';
import { dashed, prepare } from '../../live/page/charts.js';
import { fonts, palette } from '../../live/page/palette.js';
import { shown, ticks } from './time.js';
import { clock, short } from '../../live/page/units.js';

export const LEFT = 46;
const [RIGHT, TOP, BOTTOM] = [8, 8, 16];
// From so many times the limit on, small values would vanish on a linear scale.
const LOG_FROM = 8;
const COLOURS = ['alt-1', 'alt-2', 'alt-0', 'caution', 'muted', 'accent'];

/** @type {(i: number) => string} */
export const colourOf = (i) => palette[COLOURS[i % COLOURS.length]];

/**
 * The place of a time in a plot that is so many pixels wide, and the time of a place.
 * @type {(width: number) => { x: (t: number) => number, t: (x: number) => number }}
 */
export function timeAxis(width) {
  const [wide, inner] = [shown.to - shown.from, Math.max(1, width - LEFT - RIGHT)];
  return { x: (t) => LEFT + (t - shown.from) / wide * inner, t: (x) => shown.from + (x - LEFT) / inner * wide };
}

/**
 * The lowest and the highest value in the time that is shown; null when there is none.
 * @type {(line: Line) => [number, number] | null}
 */
function extent(line) {
  const { lo, hi } = valuesOf(line);
  const from = Math.max(0, Math.floor((shown.from - line.t) / line.w));
  const to = Math.min(lo.length - 1, Math.floor((shown.to - line.t) / line.w));
  let [least, most] = [Infinity, -Infinity];
  for (let i = from; i <= to; i++) {
    if (lo[i] < least) least = lo[i];
    if (hi[i] > most) most = hi[i];
  }
  return least <= most ? [least, most] : null;
}

/** @type {(plot: Plot) => { low: number, high: number, log: boolean }} */
function scaleOf({ lines, limit }) {
  let [low, high] = [Infinity, -Infinity];
  for (const line of lines) {
    const found = extent(line);
    if (found) [low, high] = [Math.min(low, found[0]), Math.max(high, found[1])];
  }
  if (limit && high > LOG_FROM * limit) return { low: limit / 20, high: high * 1.3, log: true };
  if (limit) [low, high] = [Math.min(low, 0), Math.max(high, limit * 1.15)];
  if (!(high > low)) [low, high] = low === high ? [low - 1, high + 1] : [0, 1];
  const room = (high - low) * 0.06;
  return { low: limit && low === 0 ? 0 : low - room, high: high + room, log: false };
}

/** @type {(low: number, high: number, log: boolean, most: number) => number[]} */
function marks(low, high, log, most) {
  const found = [];
  if (log) {
    for (let v = 10 ** Math.ceil(Math.log10(low)); v <= high; v *= 10) found.push(v);
    return found;
  }
  const rough = (high - low) / most;
  const ten = 10 ** Math.floor(Math.log10(rough));
  const step = ten * ([1, 2, 5].find((n) => n * ten >= rough) ?? 10);
  for (let v = Math.ceil(low / step) * step; v <= high; v += step) found.push(Math.abs(v) < step / 1e6 ? 0 : v);
  return found;
}

/**
 * What lies behind the lines: spans of modes, then of alarms.
 * @type {(pen: Pen, x: (t: number) => number, height: number, vehicle: Vehicle, alarms: Span[]) => void}
 */
export function backdrop(pen, x, height, vehicle, alarms) {
  const bottom = height - BOTTOM;
  (vehicle.spans ?? []).filter(({ what }) => what === 'mode').forEach((mode, i) => {
    pen.globalAlpha = i % 2 ? 0.55 : 0;
    pen.fillStyle = palette.raised;
    pen.fillRect(x(mode.t0), TOP, x(mode.t1) - x(mode.t0), bottom - TOP);
  });
  for (const { what, t0, t1 } of vehicle.spans ?? []) {
    if (what !== 'failsafe') continue;
    pen.globalAlpha = 0.16;
    pen.fillStyle = palette.caution;
    pen.fillRect(x(t0), TOP, Math.max(1.5, x(t1) - x(t0)), bottom - TOP);
  }
  for (const alarm of alarms) {
    const wide = Math.max(1.5, x(alarm.t1) - x(alarm.t0));
    pen.fillStyle = palette[alarm.severity];
    pen.globalAlpha = alarm.id === shown.chosen ? 0.22 : 0.11;
    pen.fillRect(x(alarm.t0), TOP, wide, bottom - TOP);
    pen.globalAlpha = 0.9;
    pen.fillRect(x(alarm.t0), TOP - 4, wide, 3);
  }
  pen.globalAlpha = 1;
}

/** @type {(canvas: HTMLCanvasElement, plot: Plot, vehicle: Vehicle, alarms: Span[]) => void} */
export function draw(canvas, plot, vehicle, alarms) {
  const { pen, width, height } = prepare(canvas);
  if (!width) return;
  const { x } = timeAxis(width);
  const { low, high, log } = scaleOf(plot);
  const bottom = height - BOTTOM;
  /** @type {(v: number) => number} */
  const part = log ? (v) => Math.log(Math.max(v, low) / low) / Math.log(high / low) : (v) => (v - low) / (high - low);
  /** @type {(v: number) => number} */
  const y = (v) => bottom - part(v) * (bottom - TOP);
  pen.font = `10.5px ${fonts.text}`;
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, width - LEFT - RIGHT, height);
  pen.clip();
  backdrop(pen, x, height, vehicle, alarms);
  pen.restore();
  axes(pen, width, height, x, y, marks(low, high, log, (bottom - TOP) / 26));
  pen.save();
  pen.beginPath();
  pen.rect(LEFT, 0, width - LEFT - RIGHT, bottom + 1);
  pen.clip();
  plot.lines.forEach((line, i) => band(pen, line, x, y, colourOf(i)));
  if (plot.limit) {
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width, y(plot.limit));
    pen.clip();
    plot.lines.forEach((line) => band(pen, line, x, y, palette.warning));
    pen.restore();
    dashed(pen, LEFT, y(plot.limit), width - RIGHT, y(plot.limit), palette.muted);
  }
  if (Number.isFinite(shown.at)) dashed(pen, x(shown.at), TOP, x(shown.at), bottom, palette.accent);
  pen.restore();
}

/** @type {(pen: Pen, width: number, height: number, x: (t: number) => number, y: (v: number) => number, values: number[]) => void} */
function axes(pen, width, height, x, y, values) {
  pen.lineWidth = 1;
  pen.strokeStyle = palette.line;
  pen.fillStyle = palette['grid-text'];
  pen.textBaseline = 'middle';
  pen.textAlign = 'right';
  pen.beginPath();
  for (const value of values) {
    const at = Math.round(y(value)) + 0.5;
    if (at < TOP - 2 || at > height - BOTTOM + 1) continue;
    pen.moveTo(LEFT, at);
    pen.lineTo(width - RIGHT, at);
    pen.fillText(Math.abs(value) >= 1e4 ? short(value) : String(Number(value.toPrecision(4))), LEFT - 6, at);
  }
  pen.stroke();
  pen.textBaseline = 'alphabetic';
  pen.textAlign = 'center';
  for (const t of ticks(width)) {
    const at = x(t);
    if (at < LEFT + 24 || at > width - 30) continue;
    pen.fillText(clock(t).replace('t=', '').replace('.0 s', ' s'), at, height - 3);
  }
  pen.textAlign = 'left';
}

/**
 * How far apart filled bins may be and still be joined by a line: a hole in the data stays a hole.
 * @type {WeakMap<Line, number>}
 */
const reaches = new WeakMap();

/** @type {(line: Line) => number} */
function reachOf(line) {
  let found = reaches.get(line);
  if (found === undefined) {
    const { lo } = valuesOf(line);
    const gaps = [];
    for (let i = 0, last = -1; i < lo.length; i++) {
      if (lo[i] !== lo[i]) continue;
      if (last >= 0) gaps.push(i - last);
      last = i;
    }
    gaps.sort((a, b) => a - b);
    found = Math.max(2, 3 * (gaps[gaps.length >> 1] ?? 1));
    reaches.set(line, found);
  }
  return found;
}

/** @type {(pen: Pen, line: Line, x: (t: number) => number, y: (v: number) => number, colour: string) => void} */
function band(pen, line, x, y, colour) {
  const { lo, hi } = valuesOf(line);
  const reach = reachOf(line);
  const from = Math.max(0, Math.floor((shown.from - line.t) / line.w) - reach);
  const to = Math.min(lo.length - 1, Math.ceil((shown.to - line.t) / line.w) + reach);
  pen.strokeStyle = colour;
  pen.lineWidth = 1.4;
  pen.lineJoin = 'round';
  pen.beginPath();
  let [last, before] = [-Infinity, 0];
  for (let i = from; i <= to; i++) {
    if (lo[i] !== lo[i]) continue;
    const at = x(line.t + (i + 0.5) * line.w);
    let [first, second] = [y(hi[i]), y(lo[i])];
    // the end of the bin that is nearer to the bin before comes first, so that nothing zigzags
    if (Math.abs(second - before) < Math.abs(first - before)) [first, second] = [second, first];
    if (i - last > reach) {
      pen.moveTo(at, first + (first === second ? 0.7 : 0));
      if (first === second) pen.lineTo(at, first - 0.7);
    } else {
      pen.lineTo(at, first);
    }
    pen.lineTo(at, second);
    [last, before] = [i, second];
  }
  pen.stroke();
}

/**
 * The values at a moment in words; empty where there are none.
 * @type {(plot: Plot, t: number) => string}
 */
export function reading(plot, t) {
  const words = [];
  for (const line of plot.lines) {
    const { lo, hi } = valuesOf(line);
    const reach = reachOf(line);
    let i = Math.floor((t - line.t) / line.w);
    for (let back = 0; back < reach && i >= 0 && lo[i] !== lo[i]; back++) i--;
    if (!(lo[i] === lo[i]) || lo[i] === undefined) continue;
    const value = Math.abs(hi[i] - lo[i]) <= 1e-3 * Math.max(Math.abs(hi[i]), 1e-9) ? short(hi[i]) : `${short(lo[i])} to ${short(hi[i])}`;
    words.push(`${line.name ? `${line.name} ` : ''}${value}`);
  }
  return words.length ? `${words.join(', ')}${plot.unit && plot.unit !== 'sigma' ? ` ${plot.unit}` : plot.unit === 'sigma' ? ' σ' : ''}` : '';
}
