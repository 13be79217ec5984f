// Pairs of aircraft that come too close: the line between them, where each will be at the closest approach, and when.

import { fonts, palette } from './palette.js';

const NAMES = ['advisory', 'caution', 'warning'];
const ROOMY_PX = 34;

/**
 * Draw the pairs of the picture. `rankOf(a, b)` is the rank of the pair's active alarm, -1 without one: those are only
 * what may become an alarm, and stay thin. Returns the texts, for `drawTexts` to put on top of the vehicles.
 * @type {(pen: Pen, view: View, fleet: Fleet, t: number, rankOf: (a: string, b: string) => number, chosen: string[] | null) => PairText[]}
 */
export function drawPairs(pen, view, fleet, t, rankOf, chosen) {
  if (!fleet.picture) return [];
  const { columns, t: at } = fleet.picture;
  const { pair_a: a, pair_b: b, pair_tcpa_s: tcpa, pair_dcpa_nm: dcpa, pair_vsep_ft: vsep, pair_los: lost } = columns;
  /** @type {PairText[]} */
  const texts = [];
  for (let k = a.length - 1; k >= 0; k--) {
    const [i, j] = [fleet.row(a[k]), fleet.row(b[k])];
    if (i < 0 || j < 0) continue;
    /** @type {[Point, Point]} */
    const ends = [place(view, fleet, i, t), place(view, fleet, j, t)];
    if (outside(view, ends)) continue;
    const rank = rankOf(fleet.id(i), fleet.id(j));
    const left = tcpa[k] - (t - (at ?? NaN));
    pen.strokeStyle = rank >= 0 ? palette[NAMES[rank]] : palette.muted;
    pen.lineWidth = rank >= 0 ? 1.8 : 1;
    pen.globalAlpha = rank >= 0 ? 1 : 0.6;
    line(pen, ends[0], ends[1], lost[k] ? [] : [5, 4]);
    if (rank >= 0 && left > 0) {
      /** @type {[Point, Point]} */
      const then = [place(view, fleet, i, t, left), place(view, fleet, j, t, left)];
      pen.globalAlpha = 0.55;
      line(pen, ends[0], then[0], [1, 4]);
      line(pen, ends[1], then[1], [1, 4]);
      pen.globalAlpha = 1;
      line(pen, then[0], then[1], []);
      for (const [x, y] of then) ring(pen, x, y);
      const emphasis = chosen !== null && chosen.includes(fleet.id(i)) && chosen.includes(fleet.id(j));
      // far out a crowd of texts would hide whom they are about
      if (!emphasis && apart(ends) < ROOMY_PX) continue;
      texts.push({ ...textPlace(ends, then), rank, emphasis,
        words: `${dcpa[k].toFixed(1)} NM · ${Math.round(vsep[k])} ft · ${Math.round(left)} s` });
    }
    pen.globalAlpha = 1;
  }
  return texts;
}

/**
 * Distance, height and time at the closest approach; returns their boxes, [x, y, width, height].
 * @type {(pen: Pen, texts: PairText[]) => Box[]}
 */
export const drawTexts = (pen, texts) => texts.map((text) => tag(pen, text));

/** @type {(view: View, fleet: Fleet, row: number, t: number, later?: number) => Point} */
function place(view, fleet, row, t, later = 0) {
  const s = fleet.ahead(row, t) + later;
  return [view.px(fleet.wx[row] + fleet.vx[row] * s), view.py(fleet.wy[row] + fleet.vy[row] * s)];
}

/** @type {(ends: [Point, Point]) => number} */
const apart = ([[ax, ay], [bx, by]]) => Math.hypot(ax - bx, ay - by);

/**
 * A place for the text: beyond the closest approach as they fly, or off the line between two who meet head-on.
 * @type {(ends: [Point, Point], then: [Point, Point]) => { x: number, y: number }}
 */
function textPlace([[ax, ay], [bx, by]], [[cx, cy], [dx, dy]]) {
  const [x, y] = [(cx + dx) / 2, (cy + dy) / 2];
  let [ux, uy] = [x - (ax + bx) / 2, y - (ay + by) / 2];
  if (Math.hypot(ux, uy) < 12) [ux, uy] = ay < by ? [ay - by, bx - ax] : [by - ay, ax - bx];
  const length = Math.hypot(ux, uy) || 1;
  return { x: x + ux / length * 74, y: y + uy / length * 24 };
}

/** @type {(view: View, ends: [Point, Point]) => boolean} */
function outside(view, [[x0, y0], [x1, y1]]) {
  return Math.max(x0, x1) < 0 || Math.min(x0, x1) > view.width || Math.max(y0, y1) < 0 || Math.min(y0, y1) > view.height;
}

/** @type {(pen: Pen, from: Point, to: Point, dash: number[]) => void} */
function line(pen, [x0, y0], [x1, y1], dash) {
  pen.setLineDash(dash);
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
  pen.setLineDash([]);
}

/** @type {(pen: Pen, x: number, y: number) => void} */
function ring(pen, x, y) {
  pen.beginPath();
  pen.arc(x, y, 3.5, 0, 2 * Math.PI);
  pen.fillStyle = palette.ground;
  pen.fill();
  pen.stroke();
}

/** @type {(pen: Pen, text: PairText) => Box} */
function tag(pen, { x, y, words, rank, emphasis }) {
  pen.font = `${emphasis ? 600 : 500} 11.5px ${fonts.text}`;
  const wide = pen.measureText(words).width + 12;
  pen.fillStyle = palette.surface;
  pen.strokeStyle = palette[NAMES[rank]];
  pen.lineWidth = 1;
  pen.beginPath();
  pen.roundRect(x - wide / 2, y - 10, wide, 20, 5);
  pen.fill();
  pen.stroke();
  pen.fillStyle = palette.text;
  pen.textAlign = 'center';
  pen.textBaseline = 'middle';
  pen.fillText(words, x, y + 0.5);
  pen.textAlign = 'start';
  pen.textBaseline = 'alphabetic';
  return [x - wide / 2, y - 10, wide, 20];
}
