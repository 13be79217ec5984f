// Small charts on canvas: one line over time, with a limit if there is one. And the sparkline of the header.

import { penOf } from './dom.js';
import { palette } from './palette.js';

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
 * `t`, `v`: the points; `limit`: a value to draw a line at, above which the chart warns; `at`: a moment to mark.
 * @type {(canvas: HTMLCanvasElement, t: number[], v: number[], look?: { limit?: number, floor?: number, at?: number, from?: number, to?: number }) => void}
 */
export function lineChart(canvas, t, v, { limit, floor, at, from, to } = {}) {
  const { pen, width, height } = prepare(canvas);
  if (!t.length || !width) return;
  let [low, high] = [Infinity, -Infinity];
  for (const value of v) if (value === value) [low, high] = [Math.min(low, value), Math.max(high, value)];
  if (limit !== undefined) high = Math.max(high, limit * 1.15);
  if (floor !== undefined) low = Math.min(low, floor);
  if (!(high > low)) [low, high] = [low - 1, high + 1];
  const [t0, t1] = [from ?? t[0], Math.max(to ?? t[t.length - 1], (from ?? t[0]) + 1e-3)];
  /** @type {(time: number) => number} */
  const x = (time) => (time - t0) / (t1 - t0) * (width - 2) + 1;
  /** @type {(value: number) => number} */
  const y = (value) => height - 4 - (value - low) / (high - low) * (height - 8);
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
  if (at !== undefined && at >= t0 && at < t1) dashed(pen, x(at), 0, x(at), height, palette.accent);
}

/** @type {(pen: Pen, t: number[], v: number[], x: (t: number) => number, y: (v: number) => number) => void} */
function trace(pen, t, v, x, y) {
  pen.beginPath();
  let drawing = false;
  for (let i = 0; i < t.length; i++) {
    if (v[i] !== v[i] || v[i] === null) {
      drawing = false;
    } else if (drawing) {
      pen.lineTo(x(t[i]), y(v[i]));
    } else {
      pen.moveTo(x(t[i]), y(v[i]));
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
