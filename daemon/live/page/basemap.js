// Land, borders and airports, without any other server: two small files, loaded once, drawn under everything else.
// Their layout is in tools/basemap.py.

import { by, setText } from './dom.js';
import { eastOf, northOf } from './fleet.js';
import { backwards, closed, fill, joined, Line, shifted, stroke, unwrapped } from './lines.js';
import { fonts, palette } from './palette.js';
import { Tiles } from './tiles.js';

// Pixels per metre from which airports are drawn, and from which with their codes.
const DOTS_FROM = 3e-4;
const CODES_FROM = 8e-4;
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
    this.credit = '';
    this.ready = ready;
    void load('world.bin').then((bytes) => this.readWorld(bytes)).then(ready).catch(() => {});
    void load('airports.bin').then((bytes) => this.readAirports(bytes)).then(ready).catch(() => {});
  }

  /**
   * Tiles of a map server instead, and whose they are.
   * @type {(address: string, credit: string) => void}
   */
  useTiles(address, credit) {
    this.tiles = new Tiles(address, this.ready);
    this.credit = credit;
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
    const tiled = this.tiles.draw(pen, view);
    setText(by('credit'), tiled ? this.credit : `Natural Earth${this.tiles.refused ? '; the map server gives no tiles' : ''}`);
    if (tiled) return;
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
