// The plots of the chosen vehicle, in groups; pointing, dragging and zooming in any of them moves all.

import { backdrop, colourOf, draw, LEFT, reading, timeAxis } from './chart.js';
import { prepare } from '../../live/page/charts.js';
import { report } from './data.js';
import { by, el, setText } from '../../live/page/dom.js';
import { fonts, palette } from '../../live/page/palette.js';
import { onTime, pointAt, redraw, showAll, shown, showTime, zoomTime } from './time.js';

/** @type {Record<string, string>} */
const GROUPS = {
  score: 'Scores', channel: 'GPS against IMU, channel by channel', motion: 'Motion', receiver: 'Receiver', imu: 'IMU', other: 'Other evidence',
};
// Channels that are open at first; the others wait behind a button.
const OPEN = 6;
// A drag shorter than this is a click, px.
const CLICK = 5;

export class Plots {
  constructor() {
    this.place = by('plots');
    /** @type {Vehicle | null} */
    this.vehicle = null;
    /** @type {{ canvas: HTMLCanvasElement, plot: Plot, value: HTMLElement }[]} */
    this.all = [];
    /** @type {HTMLCanvasElement | null} */
    this.modes = null;
    /** @type {{ x0: number, x1: number } | null} */
    this.drag = null;
    onTime(() => this.draw());
  }

  /** @type {(vehicle: Vehicle) => void} */
  choose(vehicle) {
    this.vehicle = vehicle;
    this.all = [];
    this.modes = null;
    const parts = [];
    if (vehicle.spans?.length) parts.push(this.lane(vehicle));
    for (const [group, title] of Object.entries(GROUPS)) {
      const plots = (vehicle.plots ?? []).filter((plot) => plot.group === group);
      if (!plots.length) continue;
      const many = group === 'channel';
      if (group === 'other') {
        parts.push(this.rest(plots, 'More evidence: '));
        continue;
      }
      parts.push(el('h3', {}, title));
      parts.push(el(group === 'score' ? 'div.grid' : 'div.grid.small', {}, ...plots.slice(0, many ? OPEN : plots.length).map((plot) => this.figure(plot))));
      if (many && plots.length > OPEN) parts.push(this.rest(plots.slice(OPEN), `${plots.length - OPEN} more, which stayed lower: `));
    }
    if (!parts.length) parts.push(el('p.muted', {}, 'Nothing to plot.'));
    this.place.replaceChildren(...parts);
    setText(by('plots-of'), vehicle.name);
    redraw();
  }

  /** @type {(plots: Plot[], words: string) => HTMLElement} */
  rest(plots, words) {
    const made = el('div.grid.small', {}, ...plots.map((plot) => this.figure(plot)));
    const names = plots.map(({ title }) => title).join(', ');
    const details = el('details.rest', {}, el('summary', {}, `${words}${names}`), made);
    details.addEventListener('toggle', redraw);
    return details;
  }

  /** @type {(plot: Plot) => HTMLElement} */
  figure(plot) {
    const canvas = el('canvas');
    const value = el('output.value');
    const unit = plot.unit === 'sigma' ? 'σ' : plot.unit;
    const peak = plot.lines.map((line) => `${line.name} ${Number(line.min.toPrecision(4))} to ${Number(line.max.toPrecision(4))}`.trim()).join('; ');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `${plot.title}${unit ? `, ${unit}` : ''}: ${peak}${plot.limit ? `; limit ${plot.limit}` : ''}`);
    const key = plot.lines.length > 1 ? plot.lines.map((line, i) => {
      const swatch = el('i');
      swatch.dataset.colour = String(i);
      return el('span.key', {}, swatch, line.name);
    }) : [];
    const limit = plot.limit ? ` · limit ${Number(plot.limit.toPrecision(4))}` : '';
    const caption = el('figcaption', {}, el('b', {}, plot.title), el('span.unit', {}, `${unit}${limit}`), ...key, value, el('small', {}, plot.told ? `${plot.meaning} (logged by the autopilot, not judged)` : plot.meaning));
    this.all.push({ canvas, plot, value });
    this.listen(canvas);
    return el('figure.plot', {}, caption, canvas);
  }

  /** @type {(vehicle: Vehicle) => HTMLElement} */
  lane(vehicle) {
    const canvas = el('canvas');
    const words = (vehicle.spans ?? []).map(({ what, word }) => (what === 'mode' ? word : what === 'failsafe' ? `failsafe: ${word}` : '')).filter(Boolean).join(', ');
    canvas.setAttribute('role', 'img');
    canvas.setAttribute('aria-label', `Flight modes in order: ${words}`);
    this.modes = canvas;
    this.listen(canvas);
    return el('figure.plot.modes', {}, el('figcaption', {}, el('b', {}, 'Flight modes'), el('small', {}, 'as the autopilot logged them; the line below: armed, failsafes')), canvas);
  }

  /** @type {(canvas: HTMLCanvasElement) => void} */
  listen(canvas) {
    /** @type {(event: MouseEvent) => number} */
    const at = (event) => timeAxis(canvas.clientWidth).t(event.clientX - canvas.getBoundingClientRect().left);
    canvas.onpointerdown = (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.drag = { x0: event.offsetX, x1: event.offsetX };
    };
    canvas.onpointermove = (event) => {
      if (this.drag && event.pointerType === 'touch') {
        const { t } = timeAxis(canvas.clientWidth);
        const by_s = t(this.drag.x1) - t(event.offsetX);
        this.drag.x1 = event.offsetX;
        showTime(shown.from + by_s, shown.to + by_s);
      } else {
        if (this.drag) this.drag.x1 = event.offsetX;
        pointAt(at(event));
        if (this.drag) redraw();
      }
    };
    canvas.onpointerup = (event) => {
      const { drag } = this;
      this.drag = null;
      if (!drag || event.pointerType === 'touch') return pointAt(at(event));
      const { t } = timeAxis(canvas.clientWidth);
      if (Math.abs(drag.x1 - drag.x0) > CLICK) showTime(t(Math.min(drag.x0, drag.x1)), t(Math.max(drag.x0, drag.x1)));
      else redraw();
    };
    canvas.onpointerleave = () => { if (!this.drag) pointAt(NaN); };
    canvas.ondblclick = showAll;
    canvas.addEventListener('wheel', (event) => {
      if (event.ctrlKey || event.metaKey) {
        event.preventDefault();
        zoomTime(Math.exp(event.deltaY / 300), at(event));
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY) || event.shiftKey) {
        event.preventDefault();
        const by_s = (event.deltaX || event.deltaY) / canvas.clientWidth * (shown.to - shown.from);
        showTime(shown.from + by_s, shown.to + by_s);
      }
    }, { passive: false });
  }

  draw() {
    const { vehicle } = this;
    if (!vehicle) return;
    const place = report.vehicles.indexOf(vehicle);
    // an incident spans its alarms, which are drawn already
    const alarms = report.alarms.filter(({ of, kind, id }) => of.includes(place) && (kind !== 'incident' || id === shown.chosen));
    for (const swatch of this.place.querySelectorAll('i[data-colour]')) {
      /** @type {HTMLElement} */ (swatch).style.background = colourOf(Number(/** @type {HTMLElement} */ (swatch).dataset.colour));
    }
    if (this.modes) this.drawModes(this.modes, vehicle, alarms);
    for (const { canvas, plot, value } of this.all) {
      if (!canvas.clientWidth) continue;
      draw(canvas, plot, vehicle, alarms);
      if (this.drag) this.drawDrag(canvas);
      setText(value, Number.isFinite(shown.at) ? reading(plot, shown.at) : '');
    }
  }

  /** @type {(canvas: HTMLCanvasElement) => void} */
  drawDrag(canvas) {
    const pen = canvas.getContext('2d');
    if (!pen || !this.drag) return;
    pen.globalAlpha = 0.18;
    pen.fillStyle = palette.accent;
    pen.fillRect(Math.min(this.drag.x0, this.drag.x1), 0, Math.abs(this.drag.x1 - this.drag.x0), canvas.clientHeight);
    pen.globalAlpha = 1;
  }

  /** @type {(canvas: HTMLCanvasElement, vehicle: Vehicle, alarms: Span[]) => void} */
  drawModes(canvas, vehicle, alarms) {
    const { pen, width, height } = prepare(canvas);
    const { x } = timeAxis(width);
    pen.save();
    pen.beginPath();
    pen.rect(LEFT, 0, width - LEFT - 8, height);
    pen.clip();
    backdrop(pen, x, height, { ...vehicle, spans: [] }, alarms);
    pen.font = `600 11px ${fonts.text}`;
    for (const { what, word, t0, t1 } of vehicle.spans ?? []) {
      const [left, wide] = [x(t0), Math.max(1.5, x(t1) - x(t0))];
      if (what === 'mode') {
        pen.fillStyle = palette.raised;
        pen.fillRect(left + 0.5, 8, wide - 1, 18);
        pen.strokeStyle = palette['line-strong'];
        pen.strokeRect(left + 0.5, 8.5, wide - 1, 17);
        pen.fillStyle = palette.text;
        const room = Math.min(left + wide, width) - Math.max(left, LEFT) - 10;
        if (room > 24) pen.fillText(word, Math.max(left, LEFT) + 6, 21, room);
      } else {
        pen.fillStyle = what === 'failsafe' ? palette.caution : palette['alt-0'];
        pen.fillRect(left, what === 'failsafe' ? 29 : 33, wide, what === 'failsafe' ? 4 : 2);
      }
    }
    pen.fillStyle = palette.caution;
    for (const { t } of vehicle.marks ?? []) pen.fillRect(x(t) - 1, 4, 2, 5);
    pen.restore();
  }
}
