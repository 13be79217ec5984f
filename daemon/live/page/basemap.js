// Land, borders and airports, without any other server: two small files, loaded once, drawn under everything else.
// Their layout is in tools/basemap.py.

import { eastOf, northOf, WORLD_M } from './fleet.js';
import { fonts, palette } from './palette.js';
import { Tiles } from './tiles.js';

// Pixels per metre from which airports are drawn, and from which with their codes.
const DOTS_FROM = 3e-4;
const CODES_FROM = 8e-4;
// A line's next point is at least so far away, in pixels.
const FINE_PX = 0.9;
const EDGE_PX = 30;
const DEGREE = 1e-4;

/** Reads integers one after another. */
class Bytes {
  /** @param {ArrayBuffer} buffer */
  constructor(buffer) {
    this.bytes = new Uint8Array(buffer);
    this.view = new DataView(buffer);
    this.at = 4;
  }

  number() {
    let [value, shift] = [0, 0];
    for (;;) {
      const byte = this.bytes[this.at++];
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
      shift += 7;
    }
  }

  signed() {
    const value = this.number();
    return value % 2 ? -(value + 1) / 2 : value / 2;
  }

  double() {
    this.at += 8;
    return this.view.getFloat64(this.at - 8, true);
  }
}

/** @type {(name: string) => Promise<Bytes>} */
const load = async (name) => new Bytes(await (await fetch(`/page/${name}`)).arrayBuffer());

/** A line or a ring in metres of the map: x, y, x, y …, and the box around it. */
class Line {
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

export class BaseMap {
  /** @param {() => void} ready called when there is something to draw */
  constructor(ready) {
    /** @type {Line[]} */
    this.land = [];
    /** @type {Line[]} */
    this.coasts = [];
    /** @type {Line[]} */
    this.borders = [];
    /** @type {{ code: string, x: number, y: number }[]} from south to north */
    this.airports = [];
    this.tiles = new Tiles('', ready);
    this.ready = ready;
    void load('world.bin').then((bytes) => this.readWorld(bytes)).then(ready).catch(() => {});
    void load('airports.bin').then((bytes) => this.readAirports(bytes)).then(ready).catch(() => {});
  }

  /**
   * Tiles of a map server instead.
   * @type {(address: string) => void}
   */
  useTiles(address) {
    this.tiles = new Tiles(address, this.ready);
  }

  /** @type {(bytes: Bytes) => void} */
  readWorld(bytes) {
    const [sx, sy, ox, oy] = [bytes.double(), bytes.double(), bytes.double(), bytes.double()];
    const arcs = Array.from({ length: bytes.number() }, () => {
      const points = new Float32Array(2 * bytes.number());
      for (let i = 0, x = 0, y = 0; i < points.length; i += 2) {
        points[i] = eastOf(ox + sx * (x += bytes.signed()));
        points[i + 1] = northOf(oy + sy * (y += bytes.signed()));
      }
      return unwrapped(points);
    });
    const rings = Array.from({ length: bytes.number() }, () => Array.from({ length: bytes.number() }, () => bytes.signed()));
    this.land = rings.map((ring) => new Line(closed(joined(ring.map((index) => (index < 0 ? backwards(arcs[~index]) : arcs[index]))))));
    this.coasts = [...new Set(rings.flat().map((index) => (index < 0 ? ~index : index)))].map((index) => new Line(arcs[index]));
    this.borders = Array.from({ length: bytes.number() }, () => new Line(arcs[bytes.number()]));
  }

  /** @type {(bytes: Bytes) => void} */
  readAirports(bytes) {
    let [lat, lon] = [0, 0];
    this.airports = Array.from({ length: bytes.number() }, () => {
      const code = String.fromCharCode(...bytes.bytes.subarray(bytes.at, bytes.at += 3));
      lat += bytes.signed();
      lon += bytes.signed();
      return { code, x: eastOf(lon * DEGREE), y: northOf(lat * DEGREE) };
    });
  }

  /** @type {(pen: Pen, view: View) => void} */
  draw(pen, view) {
    if (this.tiles.draw(pen, view)) return;
    pen.fillStyle = palette.land;
    pen.beginPath();
    shifted(this.land, view, (line, shift) => fill(pen, view, line.points, shift));
    pen.fill('evenodd');
    pen.lineWidth = 1;
    pen.strokeStyle = palette.coast;
    pen.beginPath();
    shifted(this.coasts, view, (line, shift) => stroke(pen, view, line.points, shift));
    pen.stroke();
    pen.strokeStyle = palette.border;
    pen.setLineDash([4, 3]);
    pen.beginPath();
    shifted(this.borders, view, (line, shift) => stroke(pen, view, line.points, shift));
    pen.stroke();
    pen.setLineDash([]);
    if (view.scale >= DOTS_FROM) this.drawAirports(pen, view);
  }

  /** @type {(pen: Pen, view: View) => void} */
  drawAirports(pen, view) {
    pen.strokeStyle = pen.fillStyle = palette['grid-text'];
    pen.font = `10px ${fonts.text}`;
    const [south, north] = [view.worldY(view.height), view.worldY(0)];
    pen.beginPath();
    for (const { code, x, y } of this.airports) {
      if (y < south || y > north) continue;
      const [px, py] = [view.px(x), view.py(y)];
      if (px < 0 || px > view.width) continue;
      pen.moveTo(px + 2.5, py);
      pen.arc(px, py, 2.5, 0, 2 * Math.PI);
      if (view.scale >= CODES_FROM) pen.fillText(code, px + 5, py + 3.5);
    }
    pen.stroke();
  }
}

/**
 * Whatever of these lines can be seen, once for each time that the round Earth shows it.
 * @type {(lines: Line[], view: View, draw: (line: Line, shift: number) => void) => void}
 */
function shifted(lines, view, draw) {
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
function stroke(pen, view, points, shift) {
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
function fill(pen, view, points, shift) {
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
function unwrapped(points) {
  for (let i = 2; i < points.length; i += 2) points[i] -= WORLD_M * Math.round((points[i] - points[i - 2]) / WORLD_M);
  return points;
}

/**
 * A ring that goes once around the Earth, as that of Antarctica, is closed along the edge of the map.
 * @type {(ring: Float32Array) => Float32Array}
 */
function closed(ring) {
  unwrapped(ring);
  const [first, last] = [ring[0], ring[ring.length - 2]];
  if (Math.abs(last - first) < WORLD_M / 2) return ring;
  return joined([ring, new Float32Array([last, -WORLD_M / 2, first, -WORLD_M / 2])]);
}

/** @type {(arc: Float32Array) => Float32Array} */
function backwards(arc) {
  const turned = new Float32Array(arc.length);
  for (let i = 0; i < arc.length; i += 2) [turned[i], turned[i + 1]] = [arc[arc.length - 2 - i], arc[arc.length - 1 - i]];
  return turned;
}

/** @type {(parts: Float32Array[]) => Float32Array} */
function joined(parts) {
  const whole = new Float32Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
