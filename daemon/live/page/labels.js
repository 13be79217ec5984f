// Names next to the symbols, as many as fit: the selected first, then those with alarms, and none over another.
//
// Writing letters is the slowest thing a canvas does, so each label is written once, into a sheet, and then copied.

import { penOf } from './dom.js';
import { ADSB } from './fleet.js';
import { fonts, palette } from './palette.js';
import { altitude, speed } from './units.js';

// Room is given out in squares; the spots below are a square or more from the symbol's own.
const CELL = 8;
const SYMBOL = 5;
const MOST = 120;
const HIGH = 28;
const AGAIN_MS = 400;
// How far a label keeps from the middle of its symbol, and of one with a frame around it.
const GAP = 13;
const FRAME_GAP = 19;

/**
 * Where a label may be: right of its symbol, left, below, above.
 * @type {(wide: number, gap: number) => Point[]}
 */
const spotsOf = (wide, gap) => [[gap, -14], [-gap - wide, -14], [-wide / 2, gap + 1], [-wide / 2, -HIGH - gap - 1]];

export class Labels {
  /** @param {number} ratio */
  constructor(ratio) {
    this.sheet = new Sheet(ratio);
    /** @type {{ row: number, dx: number, dy: number, cell: number }[]} */
    this.placed = [];
    this.version = '';
    this.when = 0;
  }

  /**
   * True when it is time to place the labels again; `version` says what they depend on.
   * @type {(now: number, version: string) => boolean}
   */
  due(now, version) {
    if (now - this.when < (version === this.version ? AGAIN_MS : AGAIN_MS / 4)) return false;
    [this.version, this.when] = [version, now];
    return true;
  }

  /**
   * Decide who gets a label and where, clear of `others` (boxes); until the next time they travel with their vehicles.
   * @type {(view: View, fleet: Fleet, spots: Spots, others: Box[], framed: (row: number) => boolean, colourOf: (row: number) => string) => void}
   */
  place(view, fleet, spots, others, framed, colourOf) {
    this.placed.length = 0;
    this.sheet.begin();
    const columns = Math.ceil(view.width / CELL);
    const taken = new Uint8Array(columns * Math.ceil(view.height / CELL + 1));
    const { order, x, y } = spots;
    for (const row of order) reserve(taken, columns, view, x[row] - SYMBOL, y[row] - SYMBOL, 2 * SYMBOL, 2 * SYMBOL);
    for (const box of others) reserve(taken, columns, view, ...box);
    if (!fleet.picture) return;
    const { alt_m, speed_mps, frame } = fleet.picture.columns;
    for (const row of order) {
      if (this.placed.length >= MOST) break;
      const name = fleet.name(row);
      const aircraft = frame[row] === ADSB;
      const words = `${altitude(alt_m[row], aircraft)}  ${speed(speed_mps[row], aircraft)}`;
      const wide = Math.min(Sheet.WIDE - 4, Math.max(7 * name.length, 5.6 * words.length) + 4);
      const spot = spotsOf(wide, framed(row) ? FRAME_GAP : GAP).find(([dx, dy]) => free(taken, columns, view, x[row] + dx, y[row] + dy, wide, HIGH));
      if (!spot) continue;
      reserve(taken, columns, view, x[row] + spot[0], y[row] + spot[1], wide, HIGH);
      this.placed.push({ row, dx: spot[0], dy: spot[1], cell: this.sheet.write(name, words, colourOf(row)) });
    }
  }

  /** @type {(pen: Pen, spots: Spots) => void} */
  draw(pen, spots) {
    for (const { row, dx, dy, cell } of this.placed) this.sheet.copy(pen, cell, spots.x[row] + dx, spots.y[row] + dy);
  }
}

/** Written labels, by what they say. What is not used at one placing makes room at the next. */
class Sheet {
  static WIDE = 140;
  static COLUMNS = 8;
  static ROWS = 2 * MOST / Sheet.COLUMNS;

  /** @param {number} ratio */
  constructor(ratio) {
    this.ratio = ratio;
    this.canvas = document.createElement('canvas');
    this.canvas.width = Math.round(Sheet.WIDE * ratio) * Sheet.COLUMNS;
    this.canvas.height = Math.round((HIGH + 4) * ratio) * Sheet.ROWS;
    this.pen = penOf(this.canvas);
    /** @type {Map<string, number>} by what the label says */
    this.cells = new Map();
    this.free = Array.from({ length: Sheet.COLUMNS * Sheet.ROWS }, (_, i) => i);
    /** @type {Set<number>} */
    this.used = new Set();
  }

  begin() {
    for (const [key, cell] of this.cells) {
      if (this.used.has(cell)) continue;
      this.cells.delete(key);
      this.free.push(cell);
    }
    this.used.clear();
  }

  /**
   * The cell of this label, written now unless it is there.
   * @type {(name: string, words: string, colour: string) => number}
   */
  write(name, words, colour) {
    const key = `${name}\n${words}\n${colour}`;
    let cell = this.cells.get(key);
    if (cell === undefined) {
      // there are twice as many cells as labels
      cell = this.free.pop() ?? 0;
      this.cells.set(key, cell);
      this.letter(cell, name, words, colour);
    }
    this.used.add(cell);
    return cell;
  }

  /** @type {(cell: number, name: string, words: string, colour: string) => void} */
  letter(cell, name, words, colour) {
    const { pen, ratio } = this;
    const [x, y] = this.corner(cell);
    pen.setTransform(1, 0, 0, 1, x, y);
    pen.clearRect(0, 0, Math.round(Sheet.WIDE * ratio), Math.round((HIGH + 4) * ratio));
    pen.scale(ratio, ratio);
    pen.lineJoin = 'round';
    pen.lineWidth = 3;
    pen.strokeStyle = palette.halo;
    /** @type {[text: string, font: string, fill: string, base: number][]} */
    const lines = [[name, `600 11.5px ${fonts.text}`, colour, 12], [words, `10.5px ${fonts.text}`, palette.muted, 25]];
    for (const [text, font, fill, base] of lines) {
      pen.font = font;
      pen.fillStyle = fill;
      pen.strokeText(text, 2, base, Sheet.WIDE - 4);
      pen.fillText(text, 2, base, Sheet.WIDE - 4);
    }
  }

  /** @type {(cell: number) => Point} */
  corner(cell) {
    return [cell % Sheet.COLUMNS * Math.round(Sheet.WIDE * this.ratio), Math.floor(cell / Sheet.COLUMNS) * Math.round((HIGH + 4) * this.ratio)];
  }

  /** @type {(pen: Pen, cell: number, x: number, y: number) => void} */
  copy(pen, cell, x, y) {
    const [sx, sy] = this.corner(cell);
    const [w, h] = [Math.round(Sheet.WIDE * this.ratio), Math.round((HIGH + 4) * this.ratio)];
    pen.drawImage(this.canvas, sx, sy, w, h, Math.round(x - 2), Math.round(y - 1), w / this.ratio, h / this.ratio);
  }
}

/** @type {(columns: number, view: View, x: number, y: number, wide: number, high: number, visit: (cell: number) => boolean) => boolean} */
function each(columns, view, x, y, wide, high, visit) {
  const [left, top] = [Math.max(0, Math.floor(x / CELL)), Math.max(0, Math.floor(y / CELL))];
  const right = Math.min(columns - 1, Math.floor((x + wide) / CELL));
  const bottom = Math.min(Math.floor(view.height / CELL), Math.floor((y + high) / CELL));
  for (let j = top; j <= bottom; j++) for (let i = left; i <= right; i++) if (visit(j * columns + i)) return true;
  return false;
}

/** @type {(taken: Uint8Array, columns: number, view: View, x: number, y: number, wide: number, high: number) => void} */
const reserve = (taken, columns, view, x, y, wide, high) => {
  each(columns, view, x, y, wide, high, (cell) => { taken[cell] = 1; return false; });
};

/** @type {(taken: Uint8Array, columns: number, view: View, x: number, y: number, wide: number, high: number) => boolean} */
const free = (taken, columns, view, x, y, wide, high) => x > 0 && x + wide < view.width
  && !each(columns, view, x, y, wide, high, (cell) => taken[cell] === 1);
