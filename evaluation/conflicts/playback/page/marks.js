// Single marks of the map: grid and scale, waypoints, predicted passes, headings.

import { draw } from './dom.js';
import { milesWords } from './words.js';

// Nearer than this many pixels to the line before it, a line of the grid would be noise.
const GRID_PX = 60;

/** @type {(x: number, y: number) => string} */
const point = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;

/**
 * The grid, and a scale that says how wide it is.
 * @type {(view: import('./view.js').View) => SVGElement[]}
 */
export function gridMarks(view) {
  const mile = [1, 2, 5, 10, 20, 50, 100, 200, 500].find((nm) => nm * view.scale >= GRID_PX) ?? 1000;
  const lines = [];
  for (let east = Math.ceil((view.east - view.width / 2 / view.scale) / mile) * mile; view.x(east) < view.width; east += mile) {
    lines.push(`M${point(view.x(east), 0)}V${view.height}`);
  }
  for (let north = Math.ceil((view.north - view.height / 2 / view.scale) / mile) * mile; view.y(north) > 0; north += mile) {
    lines.push(`M${point(0, view.y(north))}H${view.width}`);
  }
  const foot = view.height - 12;
  return [draw('path', { class: 'grid', d: lines.join('') }),
    draw('path', { class: 'tick', d: `M12 ${foot - 4}v4h${mile * view.scale}v-4`, fill: 'none' }),
    draw('text', { x: 16, y: foot - 5 }, `${mile} NM`)];
}

/**
 * Everybody's waypoint at a step; filled when it is reached.
 * @type {(data: EpisodeData, view: import('./view.js').View, step: number) => SVGElement[]}
 */
export function waypointMarks(data, view, step) {
  return data.aircraft.flatMap((craft, a) => {
    const way = craft.waypoints.filter(([from]) => from <= step).pop();
    if (!way || way[1] === null || way[2] === null) return [];
    const reached = craft.arrived[step] === '1';
    const look = { class: reached ? 'waypoint reached' : 'waypoint', d: 'M-4 -4h8v8h-8Z' };
    return [draw('path', { ...look, transform: `translate(${point(view.x(way[1]), view.y(way[2]))})` },
      draw('title', {}, `Waypoint of ${data.ids[a]}${reached ? ', reached' : ''}`))];
  });
}

/**
 * A way from each aircraft to where it will be when both are nearest, and the distance between the two places.
 * @type {(view: import('./view.js').View, pass: Pass, from: ([number, number] | null)[], tone: string) => SVGElement[]}
 */
export function passMarks(view, [, , , nm, , aEast, aNorth, bEast, bNorth, conflict], from, tone) {
  const [x, y, x2, y2] = [view.x(aEast), view.y(aNorth), view.x(bEast), view.y(bNorth)];
  const ends = [point(x, y), point(x2, y2)];
  /** @type {(name: string) => string} */
  const look = (name) => (conflict ? `${name} conflict` : name);
  const ways = from.flatMap((place, i) => (place ? [draw('path', { class: look('pass'), 'data-tone': tone, d: `M${point(...place)}L${ends[i]}` })] : []));
  const nearest = draw('path', { class: look('cpa'), 'data-tone': tone, d: `M${ends[0]}L${ends[1]}` });
  const label = draw('text', { class: 'craft-more', x: ((x + x2) / 2 + 12).toFixed(1), y: ((y + y2) / 2 + 4).toFixed(1) }, milesWords(nm));
  return conflict ? [...ways, nearest, label] : [...ways, nearest];
}

/**
 * The heading on the way to the next step, by the short way round.
 * @type {(craft: Craft, step: number, part: number) => number}
 */
export function headingAt(craft, step, part) {
  const now = craft.heading_deg[step] ?? 0;
  const next = part ? craft.heading_deg[step + 1] ?? now : now;
  return now + ((next - now + 540) % 360 - 180) * part;
}
