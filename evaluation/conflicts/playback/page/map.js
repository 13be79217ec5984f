// The map: where everybody has been and is, who will pass whom and how near, and what went wrong where.

import { by, draw, pathThrough } from './dom.js';
import { gridMarks, headingAt, passMarks, waypointMarks } from './marks.js';
import { View } from './view.js';
import { clockWords, commandWords, passesAt } from './words.js';

// Steps of the past that are drawn stronger than the rest of the way.
const TRAIL = 30;
// Pixels around everything.
const MARGIN = 44;
const CRAFT = 'M0 -8L5 6L0 3L-5 6Z';

export class EpisodeMap {
  /**
   * @param {EpisodeData} data
   * @param {(t: number) => void} jump
   */
  constructor(data, jump) {
    this.data = data;
    this.jump = jump;
    this.view = new View();
    this.svg = by('map', SVGSVGElement);
    this.moved = () => {};
    /** Layers from below to above. */
    this.layers = Object.fromEntries(['grid', 'ways', 'zones', 'trails', 'passes', 'mistakes', 'craft', 'scale'].map(
      (name) => [name, this.svg.appendChild(draw('g'))]));
    this.craft = data.aircraft.map((_, a) => this.makeCraft(data.ids[a]));
    this.listen();
  }

  /** @type {(name: string) => CraftMarks} */
  makeCraft(name) {
    const { zones, trails, craft } = this.layers;
    const title = draw('title');
    const label = draw('text', { class: 'craft-name', x: 9, y: -4 }, name);
    const more = draw('text', { class: 'craft-more', x: 9, y: 9 });
    const body = draw('path', { class: 'craft', d: CRAFT });
    const ring = draw('circle', { class: 'commanded', r: 12 });
    const group = craft.appendChild(draw('g', {}, title, ring, body, label, more));
    return { zone: zones.appendChild(draw('circle', { class: 'zone' })), trail: trails.appendChild(draw('path', { class: 'trail' })), group, title, body, ring, more };
  }

  listen() {
    /** @type {[number, number] | null} */
    let held = null;
    this.svg.onpointerdown = (event) => {
      if (event.button || !this.view.zoomed || event.target instanceof SVGPathElement && event.target.matches('.mistake')) return;
      held = [event.clientX, event.clientY];
      this.svg.setPointerCapture(event.pointerId);
    };
    this.svg.onpointermove = (event) => {
      if (!held) return;
      this.view.pan(event.clientX - held[0], event.clientY - held[1]);
      held = [event.clientX, event.clientY];
      this.relaid();
    };
    this.svg.onpointerup = this.svg.onpointercancel = () => { held = null; };
    this.svg.addEventListener('wheel', (event) => {
      // the wheel alone scrolls the page; with ctrl, or two fingers on a pad, it zooms
      if (!event.ctrlKey) return;
      event.preventDefault();
      const { left, top } = this.svg.getBoundingClientRect();
      this.zoom(Math.exp(-event.deltaY / 200), event.clientX - left, event.clientY - top);
    }, { passive: false });
    by('zoom-in', HTMLButtonElement).onclick = () => this.zoom(1.6);
    by('zoom-out', HTMLButtonElement).onclick = () => this.zoom(1 / 1.6);
    by('fit', HTMLButtonElement).onclick = () => this.fit();
    new ResizeObserver(() => this.fit()).observe(by('map-box', HTMLElement));
  }

  /** @type {(factor: number, x?: number, y?: number) => void} */
  zoom(factor, x, y) {
    this.view.zoom(factor, x, y);
    this.relaid();
  }

  /**
   * Two aircraft and what is around them, at a step.
   * @type {(who: number[], step: number) => void}
   */
  focus(who, step) {
    const places = who.flatMap((a) => {
      const { east, north } = this.data.aircraft[a];
      const [x, y] = [east[step], north[step]];
      return typeof x === 'number' && typeof y === 'number' ? [[x, y]] : [];
    });
    if (!places.length) return;
    const [easts, norths] = [places.map(([x]) => x), places.map(([, y]) => y)];
    const around = this.data.settings.los_threshold_nm;
    this.view.show([Math.min(...easts) - around, Math.min(...norths) - around, Math.max(...easts) + around, Math.max(...norths) + around]);
    this.relaid();
  }

  fit() {
    const box = by('map-box', HTMLElement);
    this.view.width = box.clientWidth;
    this.view.height = box.clientHeight;
    this.svg.setAttribute('viewBox', `0 0 ${box.clientWidth} ${box.clientHeight}`);
    const places = this.data.aircraft.flatMap((craft) => [
      ...craft.east.map((east, k) => [east, craft.north[k]]), ...craft.waypoints.map(([, east, north]) => [east, north])]);
    /** @type {[number, number, number, number]} */
    const all = [Infinity, Infinity, -Infinity, -Infinity];
    for (const [east, north] of places) {
      if (east === null || north === null) continue;
      all[0] = Math.min(all[0], east);
      all[1] = Math.min(all[1], north);
      all[2] = Math.max(all[2], east);
      all[3] = Math.max(all[3], north);
    }
    this.view.fit(all[0] > all[2] ? [-1, -1, 1, 1] : all, MARGIN);
    this.relaid();
  }

  /** Another part of the chart is shown. */
  relaid() {
    this.svg.style.touchAction = this.view.zoomed ? 'none' : '';
    this.drawGround();
    this.moved();
  }

  /** What does not move: grid, ways, places of mistakes. */
  drawGround() {
    const { data, view, layers } = this;
    const [grid, ...scale] = gridMarks(view);
    layers.grid.replaceChildren(grid);
    layers.scale.replaceChildren(...scale);
    layers.ways.replaceChildren(...data.aircraft.map((craft) => draw('path', { class: 'way', d: pathThrough(craft.east.map((_, k) => this.at(craft, k))) })));
    layers.mistakes.replaceChildren(...data.mistakes.map((mistake) => {
      const missed = mistake.kind === 'missed';
      const mark = draw('path', { class: 'mistake', 'data-tone': missed ? 'missed' : 'ghost', d: missed ? 'M-6 0L0 -6L6 0L0 6Z' : 'M0 -6.5L6.5 5H-6.5Z',
        transform: `translate(${view.x(mistake.east).toFixed(1)} ${view.y(mistake.north).toFixed(1)})` },
      draw('title', {}, `${missed ? 'Missed conflict' : 'Ghost alert'} at ${clockWords(mistake.t_s)}`));
      mark.onclick = () => this.jump(mistake.t_s);
      return mark;
    }));
  }

  /**
   * Where an aircraft is at a step, or `part` of the way to the next.
   * @type {(craft: Craft, step: number, part?: number) => [number, number] | null}
   */
  at(craft, step, part = 0) {
    let east = craft.east[step];
    let north = craft.north[step];
    if (east === null || north === null || east === undefined || north === undefined) return null;
    const [nextEast, nextNorth] = [craft.east[step + 1], craft.north[step + 1]];
    if (part && typeof nextEast === 'number' && typeof nextNorth === 'number') {
      east += (nextEast - east) * part;
      north += (nextNorth - north) * part;
    }
    return [this.view.x(east), this.view.y(north)];
  }

  /**
   * How many pixels a mile is at this height of the map: it grows towards the poles.
   * @type {(y: number) => number}
   */
  milePx(y) {
    const { chart } = this.data;
    const north = this.view.north - (y - this.view.height / 2) / this.view.scale;
    return this.view.scale * chart.shrink * Math.cosh(chart.middle + north / chart.nm_per_unit);
  }

  /** @type {(step: number, part: number, windows: EpisodeWindow[]) => void} */
  drawMoment(step, part, windows) {
    const { data, layers } = this;
    /** @type {(kind: string, bad: string) => string} */
    const toneOf = (kind, bad) => {
      const found = windows.filter((w) => w.kind === kind);
      return found.some((w) => w.verdict === bad) ? bad : found.length ? 'matched' : 'quiet';
    };
    const conflictTone = toneOf('conflict', 'missed');
    const alertTone = toneOf('alert', 'ghost');
    const passes = passesAt(data, step);
    const inConflict = new Set(passes.flatMap((pass) => (pass[9] ? [pass[1], pass[2]] : [])));
    const commands = new Map(data.commands.filter(([at]) => at === step).map(([, a, turn, faster]) => [a, commandWords(turn, faster)]));
    data.aircraft.forEach((craft, a) => {
      const tone = craft.violated[step] === '1' ? 'lost' : inConflict.has(a) ? conflictTone : 'quiet';
      this.drawCraft(a, step, part, tone, commands.get(a) ?? '', alertTone);
    });
    layers.passes.replaceChildren(...waypointMarks(data, this.view, step), ...passes.flatMap((pass) => {
      const [a, b] = [pass[1], pass[2]].map((who) => this.at(data.aircraft[who], step, part));
      return passMarks(this.view, pass, [a, b], conflictTone);
    }));
  }

  /** @type {(a: number, step: number, part: number, tone: string, command: string, alertTone: string) => void} */
  drawCraft(a, step, part, tone, command, alertTone) {
    const { data } = this;
    const craft = data.aircraft[a];
    const marks = this.craft[a];
    const place = this.at(craft, step, part);
    for (const node of [marks.zone, marks.trail, marks.group]) node.style.display = place ? '' : 'none';
    if (!place) return;
    const [x, y] = place;
    const gone = craft.arrived[step] === '1';
    marks.zone.dataset.tone = marks.body.dataset.tone = tone;
    marks.zone.setAttribute('cx', x.toFixed(1));
    marks.zone.setAttribute('cy', y.toFixed(1));
    marks.zone.setAttribute('r', (data.settings.los_threshold_nm / 2 * this.milePx(y)).toFixed(1));
    const past = [];
    for (let k = Math.max(0, step - TRAIL); k <= step; k++) past.push(this.at(craft, k));
    marks.trail.setAttribute('d', pathThrough([...past, place]));
    marks.group.setAttribute('transform', `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
    marks.group.style.opacity = gone ? '0.55' : '';
    marks.body.setAttribute('transform', `rotate(${headingAt(craft, step, part).toFixed(1)})`);
    marks.ring.style.display = command ? '' : 'none';
    marks.ring.dataset.tone = alertTone;
    marks.more.textContent = command;
    const height = craft.alt_ft?.[step];
    marks.title.textContent = `${data.ids[a]}: heading ${craft.heading_deg[step] ?? '–'}°, ${craft.speed_kt[step] ?? '–'} kt`
      + `${typeof height === 'number' ? `, ${height} ft` : ''}${gone ? ', arrived' : ''}`;
  }

}
