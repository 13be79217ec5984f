// The vehicles' symbols, drawn once per theme into one sheet: a frame then only copies small squares out of it.

import { penOf } from './dom.js';
import { mix, palette } from './palette.js';

const SIZE = 20;
const HEADINGS = 36;
const LEVELS = 7;
const TOP_M = 12192; // 40,000 ft
export const PLANE = 0;
export const DRONE = 1;
const TONES = LEVELS + 4;
const UNKNOWN = LEVELS + 3;

/**
 * The tone of an altitude in metres.
 * @type {(alt_m: number) => number}
 */
export function toneOf(alt_m) {
  if (!(alt_m > -1e9)) return UNKNOWN;
  return Math.max(0, Math.min(LEVELS - 1, Math.round(alt_m / TOP_M * (LEVELS - 1))));
}

/**
 * The tone of an alarm's rank: 0 advisory, 1 caution, 2 warning.
 * @type {(rank: number) => number}
 */
export const toneOfRank = (rank) => LEVELS + rank;

export class Symbols {
  /** @param {number} ratio */
  constructor(ratio) {
    this.ratio = ratio;
    this.cell = Math.round(SIZE * ratio);
    this.sheet = document.createElement('canvas');
    this.sheet.width = this.cell * HEADINGS;
    this.sheet.height = this.cell * TONES * 4;
    const pen = penOf(this.sheet);
    for (let shape = 0; shape < 2; shape++) {
      for (let hollow = 0; hollow < 2; hollow++) {
        for (let tone = 0; tone < TONES; tone++) this.row(pen, shape, hollow, tone);
      }
    }
  }

  /** @type {(pen: Pen, shape: number, hollow: number, tone: number) => void} */
  row(pen, shape, hollow, tone) {
    const y = (shape * 2 + hollow) * TONES + tone;
    for (let i = 0; i < HEADINGS; i++) {
      pen.setTransform(this.ratio, 0, 0, this.ratio, (i + 0.5) * this.cell, (y + 0.5) * this.cell);
      pen.rotate(i / HEADINGS * 2 * Math.PI);
      pen.beginPath();
      outline(pen, shape);
      pen.lineJoin = 'round';
      pen.strokeStyle = palette.halo;
      pen.lineWidth = 3;
      pen.stroke();
      if (hollow) {
        pen.globalAlpha = 0.75;
        pen.strokeStyle = colourOf(tone);
        pen.lineWidth = 1.3;
        pen.fillStyle = palette.halo;
        pen.fill();
        pen.stroke();
        pen.globalAlpha = 1;
      } else {
        pen.fillStyle = colourOf(tone);
        pen.fill();
      }
    }
  }

  /** @type {(pen: Pen, shape: number, hollow: number, tone: number, track: number, x: number, y: number) => void} */
  draw(pen, shape, hollow, tone, track, x, y) {
    const turn = track === track ? Math.round(track / 360 * HEADINGS) % HEADINGS : 0;
    const { cell: c, ratio } = this;
    // on whole pixels of the screen a copy is a copy; between them each would have to be computed
    const [left, top] = [Math.round((x - SIZE / 2) * ratio) / ratio, Math.round((y - SIZE / 2) * ratio) / ratio];
    pen.drawImage(this.sheet, turn * c, ((shape * 2 + hollow) * TONES + tone) * c, c, c, left, top, c / ratio, c / ratio);
  }
}

/** @type {(pen: Pen, shape: number) => void} */
function outline(pen, shape) {
  if (shape === PLANE) {
    pen.moveTo(0, -8.5);
    pen.lineTo(5.6, 6.5);
    pen.lineTo(0, 3.4);
    pen.lineTo(-5.6, 6.5);
  } else {
    // a drop: it may hover, but it has a nose
    pen.moveTo(0, -8.5);
    pen.quadraticCurveTo(5.6, -1.5, 5, 2.4);
    pen.arc(0, 2.2, 5, 0, Math.PI);
    pen.quadraticCurveTo(-5.6, -1.5, 0, -8.5);
  }
  pen.closePath();
}

/** @type {(tone: number) => string} */
export function colourOf(tone) {
  if (tone === UNKNOWN) return palette.unknown;
  if (tone >= LEVELS) return palette[['advisory', 'caution', 'warning'][tone - LEVELS]];
  const part = tone / (LEVELS - 1) * 2;
  return part <= 1 ? mix(palette['alt-0'], palette['alt-1'], part) : mix(palette['alt-1'], palette['alt-2'], part - 1);
}

/**
 * The frame around a vehicle with an alarm: its severity as a shape.
 * @type {(pen: Pen, rank: number, x: number, y: number, r: number) => void}
 */
export function frameOf(pen, rank, x, y, r) {
  if (rank === 2) {
    pen.moveTo(x, y - r * 1.25);
    pen.lineTo(x + r * 1.15, y + r * 0.8);
    pen.lineTo(x - r * 1.15, y + r * 0.8);
    pen.closePath();
  } else if (rank === 1) {
    pen.moveTo(x, y - r * 1.15);
    pen.lineTo(x + r * 1.15, y);
    pen.lineTo(x, y + r * 1.15);
    pen.lineTo(x - r * 1.15, y);
    pen.closePath();
  } else {
    pen.moveTo(x + r, y);
    pen.arc(x, y, r, 0, 2 * Math.PI);
  }
}
