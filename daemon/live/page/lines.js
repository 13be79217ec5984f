// Lines and areas of the base map: across the date line, clipped to the map, and no finer than its pixels.

import { WORLD_M } from './fleet.js';

// A line's next point is at least so far away, in pixels.
const FINE_PX = 0.9;
const EDGE_PX = 30;

/** A line or a ring in metres of the map: x, y, x, y …, and the box around it. */
export class Line {
  /** @param {Float32Array} points */
  constructor(points) {
    this.points = points;
    this.box = [Infinity, Infinity, -Infinity, -Infinity];
    for (let i = 0; i < points.length; i += 2) {
      this.box[0] = Math.min(this.box[0], points[i]);
      this.box[2] = Math.max(this.box[2], points[i]);
      this.box[1] = Math.min(this.box[1], points[i + 1]);
      this.box[3] = Math.max(this.box[3], points[i + 1]);
    }
  }
}

/**
 * Whatever of these lines can be seen, once for each time that the round Earth shows it.
 * @type {(lines: Line[], view: View, draw: (line: Line, shift: number) => void) => void}
 */
export function shifted(lines, view, draw) {
  const half = (view.width / 2 + EDGE_PX) / view.scale;
  const [west, east] = [view.x - half, view.x + half];
  const [south, north] = [view.worldY(view.height + EDGE_PX), view.worldY(-EDGE_PX)];
  for (const line of lines) {
    const [w, s, e, n] = line.box;
    if (n < south || s > north) continue;
    for (const shift of [-2 * WORLD_M, -WORLD_M, 0, WORLD_M, 2 * WORLD_M]) if (e + shift >= west && w + shift <= east) draw(line, shift);
  }
}

/** @type {(pen: Pen, view: View, points: Float32Array, shift: number) => void} */
export function stroke(pen, view, points, shift) {
  const { scale, width, height } = view;
  const [x0, y0] = [width / 2 + (shift - view.x) * scale, height / 2 + view.y * scale];
  let [drawing, lastX, lastY] = [false, NaN, NaN];
  for (let i = 0; i < points.length; i += 2) {
    const [x, y] = [x0 + points[i] * scale, y0 - points[i + 1] * scale];
    const last = i + 2 === points.length;
    if (drawing && !last && Math.abs(x - lastX) + Math.abs(y - lastY) < FINE_PX) continue;
    const out = (x < -EDGE_PX && lastX < -EDGE_PX) || (x > width + EDGE_PX && lastX > width + EDGE_PX)
      || (y < -EDGE_PX && lastY < -EDGE_PX) || (y > height + EDGE_PX && lastY > height + EDGE_PX);
    if (drawing && !out) pen.lineTo(x, y); else pen.moveTo(x, y);
    [drawing, lastX, lastY] = [true, x, y];
  }
}

let scratch = new Float32Array(1024);
let clipped = new Float32Array(1024);

/**
 * A ring, clipped to the map so that its far side costs nothing: Sutherland and Hodgman, edge by edge.
 * @type {(pen: Pen, view: View, points: Float32Array, shift: number) => void}
 */
export function fill(pen, view, points, shift) {
  const { scale, width, height } = view;
  const [x0, y0] = [width / 2 + (shift - view.x) * scale, height / 2 + view.y * scale];
  const room = 4 * points.length + 16;
  if (scratch.length < room) [scratch, clipped] = [new Float32Array(room), new Float32Array(room)];
  let [n, lastX, lastY] = [0, NaN, NaN];
  for (let i = 0; i < points.length; i += 2) {
    const [x, y] = [x0 + points[i] * scale, y0 - points[i + 1] * scale];
    if (n && Math.abs(x - lastX) + Math.abs(y - lastY) < FINE_PX) continue;
    [scratch[n], scratch[n + 1], lastX, lastY] = [x, y, x, y];
    n += 2;
  }
  n = clip(n, 0, -EDGE_PX, 1);
  n = clip(n, 0, width + EDGE_PX, -1);
  n = clip(n, 1, -EDGE_PX, 1);
  n = clip(n, 1, height + EDGE_PX, -1);
  if (n < 6) return;
  pen.moveTo(scratch[0], scratch[1]);
  for (let i = 2; i < n; i += 2) pen.lineTo(scratch[i], scratch[i + 1]);
  pen.closePath();
}

/**
 * Keep what is on one side of a line: `axis` 0 is x, and `sign` 1 means beyond the limit. From `scratch` to `scratch`.
 * @type {(n: number, axis: number, limit: number, sign: number) => number}
 */
function clip(n, axis, limit, sign) {
  let m = 0;
  for (let i = 0, j = n - 2; i < n; j = i, i += 2) {
    const [a, b] = [sign * (scratch[j + axis] - limit), sign * (scratch[i + axis] - limit)];
    if ((a >= 0) !== (b >= 0)) {
      const part = a / (a - b);
      clipped[m++] = scratch[j] + part * (scratch[i] - scratch[j]);
      clipped[m++] = scratch[j + 1] + part * (scratch[i + 1] - scratch[j + 1]);
    }
    if (b >= 0) {
      clipped[m++] = scratch[i];
      clipped[m++] = scratch[i + 1];
    }
  }
  [scratch, clipped] = [clipped, scratch];
  return m;
}

/**
 * A line across the date line goes on there instead of jumping to the other side of the map.
 * @type {(points: Float32Array) => Float32Array}
 */
export function unwrapped(points) {
  for (let i = 2; i < points.length; i += 2) points[i] -= WORLD_M * Math.round((points[i] - points[i - 2]) / WORLD_M);
  return points;
}

/**
 * A ring that goes once around the Earth, as that of Antarctica, is closed along the edge of the map.
 * @type {(ring: Float32Array) => Float32Array}
 */
export function closed(ring) {
  unwrapped(ring);
  const [first, last] = [ring[0], ring[ring.length - 2]];
  if (Math.abs(last - first) < WORLD_M / 2) return ring;
  return joined([ring, new Float32Array([last, -WORLD_M / 2, first, -WORLD_M / 2])]);
}

/** @type {(arc: Float32Array) => Float32Array} */
export function backwards(arc) {
  const turned = new Float32Array(arc.length);
  for (let i = 0; i < arc.length; i += 2) [turned[i], turned[i + 1]] = [arc[arc.length - 2 - i], arc[arc.length - 1 - i]];
  return turned;
}

/** @type {(parts: Float32Array[]) => Float32Array} */
export function joined(parts) {
  const whole = new Float32Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
