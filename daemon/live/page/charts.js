// Small charts on canvas: one line over time, with a limit if there is one. And the sparkline of the header.

import { penOf } from './dom.js';
import { fonts, palette } from './palette.js';

/**
 * An empty canvas as sharp as the screen, with what it is drawn with and its size.
 * @type {(canvas: HTMLCanvasElement) => { pen: Pen, width: number, height: number }}
 */
export function prepare(canvas) {
  const ratio = Math.min(devicePixelRatio || 1, 2);
  const { clientWidth: width, clientHeight: height } = canvas;
  const [w, h] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== w || canvas.height !== h) [canvas.width, canvas.height] = [w, h];
  const pen = penOf(canvas);
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  return { pen, width, height };
}

/**
 * `t`, `v`: the points, null where unknown; `limit`: a value to draw a line at, above which the chart warns; `at`: a
 * moment to mark; `spans`: times of alarms; `words`: how values are written, which also gives the chart a scale.
 * @type {(canvas: HTMLCanvasElement, t: number[], v: Values, look?: Look) => void}
 */
export function lineChart(canvas, t, v, { limit, floor, at, from, to, spans = [], words } = {}) {
  const { pen, width, height } = prepare(canvas);
  if (!t.length || !width) return;
  let [low, high] = [Infinity, -Infinity];
  for (const value of v) if (value === value && value !== null) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (limit !== undefined) high = Math.max(high, limit * 1.15);
  if (floor !== undefined) low = Math.min(low, floor);
  if (low === Infinity) return;
  const scale = words ? [words(high), words(low)] : null;
  if (!(high > low)) [low, high] = [low - 1, high + 1];
  const [t0, t1] = [from ?? t[0], Math.max(to ?? t[t.length - 1], (from ?? t[0]) + 1e-3)];
  /** @type {(time: number) => number} */
  const x = (time) => (time - t0) / (t1 - t0) * (width - 2) + 1;
  /** @type {(value: number) => number} */
  const y = (value) => height - 4 - (value - low) / (high - low) * (height - 8);
  alarmSpans(pen, spans, x, width, height);
  pen.strokeStyle = palette.line;
  pen.lineWidth = 1;
  pen.beginPath();
  pen.moveTo(0, height - 0.5);
  pen.lineTo(width, height - 0.5);
  pen.stroke();
  pen.lineWidth = 1.6;
  pen.lineJoin = 'round';
  pen.strokeStyle = palette['alt-1'];
  trace(pen, t, v, x, y);
  if (limit !== undefined) {
    pen.save();
    pen.beginPath();
    pen.rect(0, 0, width, y(limit));
    pen.clip();
    pen.strokeStyle = palette.warning;
    trace(pen, t, v, x, y);
    pen.restore();
    dashed(pen, 0, y(limit), width, y(limit), palette.muted);
  }
  if (at !== undefined && at >= t0 && at <= t1) dashed(pen, x(at), 0, x(at), height, palette.accent);
  if (scale) {
    pen.font = `10px ${fonts.text}`;
    written(pen, scale[0], 3, 10);
    if (scale[1] !== scale[0]) written(pen, scale[1], 3, height - 4);
  }
}

/**
 * A figure that can be read where the line runs through it.
 * @type {(pen: Pen, text: string, x: number, y: number) => void}
 */
function written(pen, text, x, y) {
  pen.lineWidth = 3;
  pen.strokeStyle = palette.surface;
  pen.strokeText(text, x, y);
  pen.fillStyle = palette.muted;
  pen.fillText(text, x, y);
}

/**
 * When alarms were active: a tint over the chart, and a line on its foot.
 * @type {(pen: Pen, spans: AlarmSpan[], x: (t: number) => number, width: number, height: number) => void}
 */
function alarmSpans(pen, spans, x, width, height) {
  for (const { from, to, rank } of spans) {
    const [left, right] = [Math.max(0, x(from)), Math.min(width, x(to))];
    if (right <= left) continue;
    pen.fillStyle = palette[['advisory', 'caution', 'warning'][rank]];
    pen.globalAlpha = 0.13;
    pen.fillRect(left, 0, Math.max(right - left, 1.5), height);
    pen.globalAlpha = 1;
    pen.fillRect(left, height - 3, Math.max(right - left, 1.5), 3);
  }
}

/**
 * The value at or before the place of the pointer, and its time; null outside of the points.
 * @type {(canvas: HTMLCanvasElement, clientX: number, t: number[], v: Values, from: number, to: number) => { t: number, v: number | null } | null}
 */
export function pointed(canvas, clientX, t, v, from, to) {
  const { left, width } = canvas.getBoundingClientRect();
  const time = from + (clientX - left) / Math.max(width, 1) * (to - from);
  const at = t.findLastIndex((each) => each <= time);
  return at < 0 ? null : { t: time, v: v[at] };
}

/**
 * The last value that is known at this moment; null: none is.
 * @type {(t: number[], v: Values, moment: number) => number | null}
 */
export function valueAt(t, v, moment) {
  const known = t.findLastIndex((each, i) => each <= moment && v[i] !== null && v[i] === v[i]);
  return known < 0 ? null : v[known];
}

/** @type {(pen: Pen, t: number[], v: Values, x: (t: number) => number, y: (v: number) => number) => void} */
function trace(pen, t, v, x, y) {
  pen.beginPath();
  let drawing = false;
  for (let i = 0; i < t.length; i++) {
    const value = v[i];
    if (value !== value || value === null) {
      drawing = false;
    } else if (drawing) {
      pen.lineTo(x(t[i]), y(value));
    } else {
      pen.moveTo(x(t[i]), y(value));
      drawing = true;
    }
  }
  pen.stroke();
}

/** @type {(pen: Pen, x0: number, y0: number, x1: number, y1: number, colour: string) => void} */
export function dashed(pen, x0, y0, x1, y1, colour) {
  pen.strokeStyle = colour;
  pen.lineWidth = 1;
  pen.setLineDash([3, 3]);
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
  pen.setLineDash([]);
}

/**
 * The last values as a filled line from zero.
 * @type {(canvas: HTMLCanvasElement, values: number[]) => void}
 */
export function sparkline(canvas, values) {
  const { pen, width, height } = prepare(canvas);
  if (values.length < 2 || !width) return;
  const high = Math.max(...values, 1);
  /** @type {(i: number) => number} */
  const x = (i) => i / (values.length - 1) * width;
  /** @type {(value: number) => number} */
  const y = (value) => height - 2 - value / high * (height - 5);
  pen.beginPath();
  values.forEach((value, i) => (i ? pen.lineTo(x(i), y(value)) : pen.moveTo(x(i), y(value))));
  pen.strokeStyle = palette.accent;
  pen.lineWidth = 1.5;
  pen.stroke();
  pen.lineTo(width, height);
  pen.lineTo(0, height);
  pen.globalAlpha = 0.14;
  pen.fillStyle = palette.accent;
  pen.fill();
  pen.globalAlpha = 1;
}
