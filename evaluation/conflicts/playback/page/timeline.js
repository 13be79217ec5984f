// The timeline: windows of conflicts and alerts with their matches, separation and predicted separation below.

import { by, draw, pathThrough } from './dom.js';
import { aboutWindow, clockWords, milesWords } from './words.js';

const ROWS = { conflict: 22, alert: 86 };
const ROW_HIGH = 38;
const CHART = { top: 146, bottom: 256 };
const HIGH = 278;
const RIGHT = 24;
// Distances of more than this many minima say nothing; the chart ends there.
const MINIMA = 6;
// Narrower than this in pixels a window has no room for its number, and is hard to hit.
const NUMBERED = 18;
const HITTABLE = 24;

export class Timeline {
  /**
   * @param {EpisodeData} data
   * @param {{ show: (t: number) => void }} player
   * @param {(w: EpisodeWindow) => void} jump
   */
  constructor(data, player, jump) {
    this.data = data;
    this.player = player;
    this.jump = jump;
    this.box = by('timeline', HTMLElement);
    this.hint = by('hint', HTMLElement);
    this.svg = this.box.appendChild(draw('svg', { role: 'group', 'aria-label': 'Timeline of conflicts and alerts' }));
    /** @type {Map<EpisodeWindow, SVGGElement>} */
    this.bars = new Map();
    /** The upper and the lower edge of each bar.
     * @type {Map<EpisodeWindow, [number, number]>}
     */
    this.edges = new Map();
    this.cursor = draw('line', { class: 'cursor', y1: 8, y2: CHART.bottom });
    this.t = 0;
    this.width = 0;
    this.left = 0;
    this.wide = 1;
    this.listen();
    this.layout();
    // another height changes nothing, and would take the focus from a window
    new ResizeObserver(() => this.box.clientWidth !== this.width && this.layout()).observe(this.box);
  }

  listen() {
    let held = false;
    /** @type {(event: PointerEvent) => number} */
    const timeAt = (event) => (event.clientX - this.svg.getBoundingClientRect().left - this.left) / this.wide * this.data.end_s;
    this.svg.onpointerdown = (event) => {
      if (event.button || event.target instanceof Element && event.target.closest('.window')) return;
      held = event.pointerType !== 'touch';
      this.player.show(timeAt(event));
    };
    this.svg.onpointermove = (event) => {
      if (held) this.player.show(timeAt(event));
      else if (!(event.target instanceof Element && event.target.closest('.window'))) this.sayTime(timeAt(event));
    };
    this.svg.onpointerup = this.svg.onpointerleave = this.svg.onpointercancel = () => { held = false; };
  }

  /** @type {(t: number) => void} */
  sayTime(t) {
    const { t_s: times, separation_nm: separation, dcpa_nm: dcpa } = this.data;
    const step = times.findLastIndex((begun) => begun <= t);
    if (step < 0) return;
    this.hint.textContent = `${clockWords(times[step])}: least separation ${milesWords(separation[step])}, least predicted ${milesWords(dcpa[step])}`;
  }

  /** @type {(t: number) => number} */
  x(t) { return this.left + t / Math.max(1e-9, this.data.end_s) * this.wide; }

  layout() {
    const { data } = this;
    const width = this.width = this.box.clientWidth;
    this.left = width < 560 ? 62 : 84;
    this.wide = Math.max(50, width - this.left - RIGHT);
    this.svg.setAttribute('viewBox', `0 0 ${width} ${HIGH}`);
    this.svg.setAttribute('height', String(HIGH));
    this.bars.clear();
    this.svg.replaceChildren(hatching('missed'), hatching('ghost'), ...this.axes(), ...this.chart(), ...this.ticks(data.conflict, ROWS.conflict - 8),
      ...this.ticks(data.deliberate, ROWS.alert + ROW_HIGH + 3), ...this.windows(data.conflicts), ...this.windows(data.alerts), ...this.matches(), this.cursor);
    this.drawMoment(this.t, []);
  }

  axes() {
    const { data } = this;
    const nodes = [draw('text', { x: 0, y: ROWS.conflict + 23 }, 'conflicts'), draw('text', { x: 0, y: ROWS.alert + 23 }, 'alerts'),
      draw('text', { x: 0, y: CHART.top + 8 }, 'NM')];
    const every = [1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200].find((s) => s / data.end_s * this.wide >= 58) ?? 14400;
    for (let t = 0; t <= data.end_s; t += every) {
      const x = this.x(t);
      nodes.push(draw('text', { x, y: HIGH - 6, 'text-anchor': 'middle' }, clockWords(t)));
    }
    const lines = [`M${this.left} ${CHART.bottom}h${this.wide}`];
    for (let minima = 0; minima <= MINIMA; minima += 2) {
      const nm = minima * data.settings.los_threshold_nm;
      if (minima) lines.push(`M${this.left} ${this.y(nm)}h${this.wide}`);
      nodes.push(draw('text', { x: this.left - 6, y: this.y(nm) + 4, 'text-anchor': 'end' }, String(nm)));
    }
    return [draw('path', { class: 'axis', d: lines.join('') }), ...nodes];
  }

  /** @type {(nm: number) => number} */
  y(nm) {
    const top = MINIMA * this.data.settings.los_threshold_nm;
    return CHART.bottom - Math.min(nm, top) / top * (CHART.bottom - CHART.top);
  }

  chart() {
    const { data } = this;
    /** @type {(values: (number | null)[]) => ([number, number] | null)[]} */
    const points = (values) => values.map((nm, k) => (nm === null ? null : [this.x(data.t_s[k]), this.y(nm)]));
    const lost = points(data.separation_nm).flatMap((place, k) => (place && data.lost[k] === '1' ? [draw('circle', { class: 'lost', cx: place[0].toFixed(1), cy: place[1].toFixed(1), r: 3 })] : []));
    const minimum = this.y(data.settings.los_threshold_nm);
    return [draw('line', { class: 'minimum', x1: this.left, x2: this.left + this.wide, y1: minimum, y2: minimum }),
      draw('path', { class: 'dcpa', d: pathThrough(points(data.dcpa_nm)) }),
      draw('path', { class: 'separation', d: pathThrough(points(data.separation_nm)) }), ...lost];
  }

  /**
   * A mark at each step at which the raw flag is set, before margins and debouncing.
   * @type {(flags: string, y: number) => SVGElement[]}
   */
  ticks(flags, y) {
    const marks = [...flags].map((flag, k) => (flag === '1' ? `M${this.x(this.data.t_s[k]).toFixed(1)} ${y}v5` : ''));
    return [draw('path', { class: 'tick', d: marks.join('') })];
  }

  matches() {
    return this.data.conflicts.flatMap((conflict) => {
      if (conflict.partner === null) return [];
      const alert = this.data.alerts[conflict.partner];
      const [x1, x2] = [conflict, alert].map((w) => this.x((w.start_s + w.end_s) / 2).toFixed(1));
      const [y1, y2] = [this.edges.get(conflict)?.[1] ?? 0, this.edges.get(alert)?.[0] ?? 0];
      return [draw('line', { class: 'match', x1, y1, x2, y2 })];
    });
  }

  /** @type {(windows: EpisodeWindow[]) => SVGElement[]} */
  windows(windows) {
    // windows whose margins overlap are drawn below each other
    /** @type {number[]} */
    const ends = [];
    const lanes = windows.map((w) => {
      const free = ends.findIndex((end) => end <= w.start);
      const lane = free < 0 ? ends.length : free;
      ends[lane] = w.end;
      return lane;
    });
    const high = ROW_HIGH / Math.max(1, ends.length);
    return windows.map((w, i) => this.bar(w, ROWS[w.kind] + lanes[i] * high, high));
  }

  /** @type {(w: EpisodeWindow, y: number, height: number) => SVGElement} */
  bar(w, y, height) {
    const x = this.x(w.start_s);
    const width = Math.max(2, this.x(w.end_s) - x);
    const group = draw('g', { class: 'window', 'data-tone': w.verdict, 'data-kind': w.kind, 'data-index': w.index, role: 'button', tabindex: 0, 'aria-label': aboutWindow(this.data, w) },
      draw('rect', { x, y, width, height: height - 1, rx: 3 }));
    if (w.verdict !== 'matched') group.append(draw('rect', { class: 'hatch', x, y, width, height: height - 1, rx: 3 }));
    if (width >= NUMBERED && height > 12) group.append(draw('text', { x: x + 5, y: y + height / 2 + 4 }, String(w.index + 1)));
    if (width < HITTABLE) group.append(draw('rect', { class: 'reach', x: x + width / 2 - HITTABLE / 2, y, width: HITTABLE, height }));
    group.onclick = () => this.jump(w);
    group.onkeydown = (event) => {
      if (event.key !== 'Enter' && event.key !== ' ') return;
      event.preventDefault();
      event.stopPropagation();
      this.jump(w);
    };
    group.onpointerenter = group.onfocus = () => this.light(w);
    group.onpointerleave = group.onblur = () => this.light(null);
    this.bars.set(w, group);
    this.edges.set(w, [y, y + height - 1]);
    return group;
  }

  /**
   * Say what a window is and mark it and its partner; null marks none.
   * @type {(w: EpisodeWindow | null) => void}
   */
  light(w) {
    const partner = w && w.partner !== null ? (w.kind === 'conflict' ? this.data.alerts : this.data.conflicts)[w.partner] : null;
    for (const [each, group] of this.bars) group.classList.toggle('lit', each === w || each === partner);
    this.hint.textContent = w ? aboutWindow(this.data, w) : '';
  }

  /** @type {(t: number, windows: EpisodeWindow[]) => void} */
  drawMoment(t, windows) {
    this.t = t;
    const x = this.x(t).toFixed(1);
    this.cursor.setAttribute('x1', x);
    this.cursor.setAttribute('x2', x);
    for (const [each, group] of this.bars) group.classList.toggle('inside', windows.includes(each));
  }
}

/** @type {(tone: string) => SVGElement} */
function hatching(tone) {
  return draw('defs', {}, draw('pattern', { id: `hatch-${tone}`, width: 7, height: 7, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)', 'data-tone': tone },
    draw('line', { class: 'hatching', x1: 0, y1: 0, x2: 0, y2: 7 })));
}
