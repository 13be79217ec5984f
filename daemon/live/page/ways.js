// Ways out of a conflict: for each aircraft a rose of the tracks that keep the two apart, and rails of speeds, levels, climbs.

import { el, facts } from './dom.js';
import { NM_M, altitude, climb, heading, known, speed } from './units.js';

const SVG = 'http://www.w3.org/2000/svg';
const [KT_MPS, FT_M] = [NM_M / 3600, 0.3048];
const [MIDDLE, RING, LETTER] = [40, 28, 37];
// how far the candidates go: detectors/conflict/constants.py
const [SPEED_SHARE, LEVEL_FT, CLIMB_FPM] = [0.25, 3000, 3000];
const NOTE = 'Each with the other going on as it is, on straight lines, for as far as conflicts are looked for. '
  + 'No instruction: other traffic, ground, weather and clearances are not looked at.';
const LOST = 'Separation is lost: no track, speed or level keeps it now.';

/**
 * What an active alarm says of ways out; nothing for an alarm of another kind, or one that is over.
 * @type {(event: AlarmEvent, nameOf: (id: string) => string) => HTMLElement[]}
 */
export function waysOut({ kind, state, evidence: { ways = [], los } }, nameOf) {
  if (kind !== 'conflict' || state === 'cleared') return [];
  const title = el('h3.of', {}, 'Ways out');
  if (!ways.length) return los ? [title, el('p.tag', {}, LOST)] : [];
  return [title, el('div.ways', {}, ...ways.map((way) => card(way, nameOf(way.id)))), el('p.tag', {}, NOTE)];
}

/** @type {(way: Way, name: string) => HTMLElement} */
function card({ trk_deg, gs_kt, alt_ft, vs_fpm }, name) {
  /** @type {Fact[]} */
  const words = [['track', told(trk_deg, heading, 'any')], ['speed', told(gs_kt, knots)], ['level', told(alt_ft, feet)], ['climb', told(vs_fpm, rate)]];
  const [kt, ft] = [gs_kt.now ?? 0, alt_ft.now ?? 0];
  return el('section.way', { 'aria-label': `Ways out of ${name}` },
    el('h4', {}, name), rose(trk_deg, `track ${told(trk_deg, heading, 'any')}`), facts(words),
    el('div.rails', {},
      rail('speed', gs_kt, kt * (1 - SPEED_SHARE), kt * (1 + SPEED_SHARE)),
      rail('level', alt_ft, Math.max(0, ft - LEVEL_FT), ft + LEVEL_FT),
      rail('climb', vs_fpm, -CLIMB_FPM, CLIMB_FPM)));
}

/** @type {(kt: number) => string} */
const knots = (kt) => speed(kt * KT_MPS, true);
/** @type {(ft: number) => string} */
const feet = (ft) => altitude(ft * FT_M, true);
/** @type {(fpm: number) => string} */
const rate = (fpm) => climb(fpm * FT_M / 60, true);

/**
 * The ranges that keep the minima, in words.
 * @type {(band: Band, write: (value: number) => string, all?: string) => string}
 */
function told({ free }, write, all) {
  if (!free) return 'not known';
  if (!free.length) return 'none';
  if (all && free[0][1] - free[0][0] === 360) return all;
  // the unit once, behind the last
  const [unit] = / \S+$/.exec(write(free[free.length - 1][1])) ?? [''];
  /** @type {(value: number) => string} */
  const bare = (value) => (unit && write(value).endsWith(unit) ? write(value).slice(0, -unit.length) : write(value));
  return free.map(([from, to]) => (from === to ? bare(from) : `${bare(from)} to ${bare(to)}`)).join(', ') + unit;
}

/** @type {(tag: string, attributes: Record<string, string | number>, ...children: Node[]) => SVGElement} */
function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, String(value));
  node.append(...children);
  return node;
}

/** A point on a circle around the middle; north is up.
 * @type {(deg: number, radius: number) => string}
 */
function at(deg, radius) {
  const angle = deg * Math.PI / 180;
  return `${(MIDDLE + radius * Math.sin(angle)).toFixed(2)} ${(MIDDLE - radius * Math.cos(angle)).toFixed(2)}`;
}

/**
 * A compass: the ring thick and whole where tracks keep the minima, thin and dashed elsewhere; a needle for the present track.
 * @type {(band: Band, words: string) => SVGElement}
 */
function rose({ now, free }, words) {
  const ring = svg('circle', { cx: MIDDLE, cy: MIDDLE, r: RING, class: 'blocked' });
  const arcs = (free ?? []).map(([from, to]) => {
    const turn = to - from === 360 ? 359.99 : (to - from + 360) % 360;
    return svg('path', { class: 'free', d: `M ${at(from, RING)} A ${RING} ${RING} 0 ${turn > 180 ? 1 : 0} 1 ${at(from + turn, RING)}` });
  });
  const needle = known(now) ? [svg('path', { class: 'needle', d: `M ${at(now + 180, 8)} L ${at(now, RING - 5)}` }),
    svg('path', { class: 'head', d: `M ${at(now, RING - 2)} L ${at(now + 14, RING - 11)} L ${at(now - 14, RING - 11)} Z` })] : [];
  const [x, y] = at(0, LETTER).split(' ');
  const north = svg('text', { x, y, class: 'north' });
  north.textContent = 'N';
  return svg('svg', { class: 'rose', viewBox: '0 0 80 80', role: 'img', 'aria-label': words }, ring, ...arcs, ...needle, north);
}

/** @type {(name: string, band: Band, low: number, high: number) => HTMLElement} */
function rail(name, { now, free }, low, high) {
  /** @type {(value: number) => string} */
  const share = (value) => `${(100 * Math.min(1, Math.max(0, (value - low) / (high - low || 1)))).toFixed(1)}%`;
  const line = el('div.rail', { 'aria-hidden': 'true' }, ...(free ?? []).map(([from, to]) => {
    const part = el('i');
    part.style.left = share(from);
    part.style.right = `calc(100% - ${share(to)})`;
    return part;
  }));
  if (known(now)) {
    const mark = el('s');
    mark.style.left = share(now);
    line.append(mark);
  }
  return el('div', {}, el('span', {}, name), line);
}
