// The map: every track, the chosen vehicle's on top with its alarms in colour, and where each was at the moment pointed at.

import { prepare } from '../../live/page/charts.js';
import { pathOf, placeOf, report } from './data.js';
import { by, setText } from '../../live/page/dom.js';
import { grid, scaleBar } from './ground.js';
import { fonts, palette } from '../../live/page/palette.js';
import { onTime, redraw, shown } from './time.js';
import { span } from '../../live/page/units.js';

// The free edge around what is fitted in, px; and how near a click must be to a track.
const EDGE = 44;
const NEAR = 14;
// Names are written next to so many vehicles at most.
const NAMED = 40;

export class TrackMap {
  /** @param {(vehicle: Vehicle) => void} choose */
  constructor(choose) {
    this.canvas = /** @type {HTMLCanvasElement} */ (/** @type {unknown} */ (by('map')));
    this.choose = choose;
    /** @type {Vehicle | null} */
    this.chosen = null;
    this.earth = report.vehicles.some(({ earth, track }) => earth && track);
    this.x = this.y = 0;
    this.scale = this.width = this.height = 1;
    this.fitted = false;
    this.listen();
    onTime(() => this.draw());
    for (const button of this.worlds()) button.onclick = () => this.show(button.dataset.world === 'earth');
  }

  /** @type {() => HTMLButtonElement[]} */
  worlds() {
    return [...document.querySelectorAll('button[data-world]')].map((node) => /** @type {HTMLButtonElement} */ (node));
  }

  /** @type {(earth: boolean) => void} */
  show(earth) {
    this.earth = earth;
    this.fitted = false;
    redraw();
  }

  /** @type {() => (Vehicle & { track: Track })[]} */
  all() {
    return /** @type {(Vehicle & { track: Track })[]} */ (report.vehicles.filter(({ track, earth }) => track && earth === this.earth));
  }

  /** @type {(vehicle: Vehicle) => void} */
  select(vehicle) {
    this.chosen = vehicle;
    if (vehicle.track && vehicle.earth !== this.earth) this.show(vehicle.earth);
    redraw();
  }

  /** @type {(x: number) => number} */
  px(x) { return this.width / 2 + (x - this.x) * this.scale; }
  /** @type {(y: number) => number} */
  py(y) { return this.height / 2 - (y - this.y) * this.scale; }
  /** @type {(px: number) => number} */
  worldX(px) { return this.x + (px - this.width / 2) / this.scale; }
  /** @type {(py: number) => number} */
  worldY(py) { return this.y - (py - this.height / 2) / this.scale; }

  /** @type {(boxes: [number, number, number, number][]) => void} */
  fitTo(boxes) {
    if (!boxes.length || this.width < 10) return;
    let [x0, x1, y0, y1] = boxes[0];
    for (const box of boxes) [x0, x1, y0, y1] = [Math.min(x0, box[0]), Math.max(x1, box[1]), Math.min(y0, box[2]), Math.max(y1, box[3])];
    [this.x, this.y] = [(x0 + x1) / 2, (y0 + y1) / 2];
    this.scale = Math.min((this.width - 2 * EDGE) / Math.max(x1 - x0, 2), (this.height - 2 * EDGE) / Math.max(y1 - y0, 2));
    this.fitted = true;
  }

  fit() {
    this.fitTo(this.all().map(({ track }) => track.box));
    redraw();
  }

  /**
   * Show where these vehicles were in a span of time.
   * @type {(vehicles: Vehicle[], t0: number, t1: number) => void}
   */
  frame(vehicles, t0, t1) {
    /** @type {[number, number, number, number][]} */
    const boxes = [];
    for (const { track, earth } of vehicles) {
      if (!track) continue;
      this.earth = earth;
      const { t, x, y } = pathOf(track);
      for (let i = Math.max(0, placeOf(t, t0)); i < t.length && t[i] <= t1; i++) boxes.push([x[i], x[i], y[i], y[i]]);
    }
    this.fitTo(boxes);
    redraw();
  }

  /** @type {(factor: number, px?: number, py?: number) => void} */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const [x, y] = [this.worldX(px), this.worldY(py)];
    this.scale = Math.min(Math.max(this.scale * factor, 1e-5), 500);
    this.x = x - (px - this.width / 2) / this.scale;
    this.y = y + (py - this.height / 2) / this.scale;
    redraw();
  }

  /** @type {(dx: number, dy: number) => void} */
  pan(dx, dy) {
    this.x -= dx / this.scale;
    this.y += dy / this.scale;
    redraw();
  }

  listen() {
    const { canvas } = this;
    /** @type {{ x: number, y: number, moved: number } | null} */
    let held = null;
    canvas.onpointerdown = (event) => {
      canvas.setPointerCapture(event.pointerId);
      held = { x: event.offsetX, y: event.offsetY, moved: 0 };
    };
    canvas.onpointermove = (event) => {
      if (!held) return;
      const [dx, dy] = [event.offsetX - held.x, event.offsetY - held.y];
      held = { x: event.offsetX, y: event.offsetY, moved: held.moved + Math.abs(dx) + Math.abs(dy) };
      this.pan(dx, dy);
    };
    canvas.onpointerup = (event) => {
      if (held && held.moved < 4) this.pick(event.offsetX, event.offsetY);
      held = null;
    };
    canvas.ondblclick = (event) => this.zoom(2, event.offsetX, event.offsetY);
    canvas.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoom(Math.exp(-event.deltaY / 300), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.onkeydown = (event) => {
      /** @type {Record<string, () => void>} */
      const keys = {
        ArrowLeft: () => this.pan(60, 0), ArrowRight: () => this.pan(-60, 0), ArrowUp: () => this.pan(0, 60), ArrowDown: () => this.pan(0, -60),
        '+': () => this.zoom(1.5), '=': () => this.zoom(1.5), '-': () => this.zoom(1 / 1.5),
      };
      const act = keys[event.key];
      if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
      act();
      event.preventDefault();
      event.stopPropagation();
    };
  }

  /** @type {(px: number, py: number) => void} */
  pick(px, py) {
    let [nearest, best] = [NEAR * NEAR, /** @type {Vehicle | null} */ (null)];
    for (const vehicle of this.all()) {
      if (!vehicle.plots) continue;
      const { x, y } = pathOf(vehicle.track);
      for (let i = 0; i < x.length; i++) {
        const apart = (this.px(x[i]) - px) ** 2 + (this.py(y[i]) - py) ** 2;
        if (apart < nearest) [nearest, best] = [apart, vehicle];
      }
    }
    if (best) this.choose(best);
  }

  draw() {
    const { pen, width, height } = prepare(this.canvas);
    [this.width, this.height] = [width, height];
    if (!width) return;
    if (!this.fitted) this.fitTo(this.all().map(({ track }) => track.box));
    for (const button of this.worlds()) button.setAttribute('aria-pressed', String((button.dataset.world === 'earth') === this.earth));
    const vehicles = this.all();
    grid(pen, this, this.earth);
    for (const vehicle of vehicles) {
      if (vehicle !== this.chosen) this.line(pen, vehicle, palette['grid-text'], vehicles.length > 12 ? 0.45 : 0.8, 1.2, shown.from, shown.to);
    }
    const chosen = vehicles.find((vehicle) => vehicle === this.chosen);
    if (chosen) {
      // its whole way, and on top of it the time that is shown
      this.line(pen, chosen, palette['alt-1'], 0.35, 1.2);
      this.line(pen, chosen, palette['alt-1'], 1, 2, shown.from, shown.to);
    }
    this.alarms(pen);
    if (chosen || vehicles.length === 1) this.ends(pen, chosen ?? vehicles[0]);
    if (Number.isFinite(shown.at)) this.moment(pen, vehicles);
    scaleBar(pen, this, vehicles.some(({ aircraft }) => aircraft));
    const every = report.every > 1 ? `; of each track one position in ${report.every} is drawn` : '';
    const first = chosen ?? vehicles[0];
    const step = first ? `; one position per ${first.track.w * report.every < 10 ? `${Number((first.track.w * report.every).toPrecision(2))} s` : span(first.track.w * report.every)} at most` : '';
    setText(by('map-words'), `${vehicles.length} ${vehicles.length === 1 ? 'track' : 'tracks'}. The time that is shown in the plots is shown here. Circle: start, square: end; spans of alarms are coloured by severity${step}${every}. ${this.earth ? 'North is up.' : 'A local frame: north is up, the origin is the vehicle’s own.'}`);
  }

  /** @type {(pen: Pen, vehicle: Vehicle & { track: Track }, colour: string, alpha: number, wide?: number, t0?: number, t1?: number) => void} */
  line(pen, vehicle, colour, alpha, wide = 1.2, t0 = -Infinity, t1 = Infinity) {
    const { t, x, y } = pathOf(vehicle.track);
    // a hole of minutes in an aircraft's track is no straight flight
    const hole = Math.max(60, 30 * vehicle.track.w * report.every);
    pen.strokeStyle = colour;
    pen.globalAlpha = alpha;
    pen.lineWidth = wide;
    pen.lineJoin = 'round';
    pen.beginPath();
    let last = -Infinity;
    for (let i = Math.max(0, placeOf(t, t0)); i < t.length && t[i] <= t1; i++) {
      if (t[i] - last > hole) pen.moveTo(this.px(x[i]), this.py(y[i]));
      pen.lineTo(this.px(x[i]), this.py(y[i]));
      last = t[i];
    }
    pen.stroke();
    pen.globalAlpha = 1;
  }

  /** @type {(pen: Pen) => void} */
  alarms(pen) {
    const order = { advisory: 0, caution: 1, warning: 2 };
    const sorted = [...report.alarms].sort((a, b) => order[a.severity] - order[b.severity] || Number(a.id === shown.chosen) - Number(b.id === shown.chosen));
    for (const alarm of sorted) {
      for (const place of alarm.of) {
        const vehicle = report.vehicles[place];
        if (!vehicle.track || vehicle.earth !== this.earth) continue;
        const own = /** @type {Vehicle & { track: Track }} */ (vehicle);
        this.line(pen, own, palette[alarm.severity], alarm.id === shown.chosen ? 1 : 0.8, alarm.id === shown.chosen ? 4 : 2.6, Math.max(alarm.t0, shown.from), Math.min(alarm.t1, shown.to));
      }
    }
  }

  /** @type {(pen: Pen, vehicle: Vehicle & { track: Track }) => void} */
  ends(pen, vehicle) {
    const { x, y } = pathOf(vehicle.track);
    const last = x.length - 1;
    pen.lineWidth = 2;
    pen.strokeStyle = palette.text;
    pen.fillStyle = palette.surface;
    pen.beginPath();
    pen.arc(this.px(x[0]), this.py(y[0]), 5, 0, 2 * Math.PI);
    pen.fill();
    pen.stroke();
    pen.fillStyle = palette.text;
    pen.fillRect(this.px(x[last]) - 4.5, this.py(y[last]) - 4.5, 9, 9);
    this.name(pen, 'start', this.px(x[0]) + 9, this.py(y[0]) - 7);
    this.name(pen, 'end', this.px(x[last]) + 9, this.py(y[last]) + 14);
  }

  /** @type {(pen: Pen, vehicles: (Vehicle & { track: Track })[]) => void} */
  moment(pen, vehicles) {
    let named = 0;
    for (const vehicle of vehicles) {
      const { t, x, y } = pathOf(vehicle.track);
      const i = placeOf(t, shown.at);
      if (i < 0 || shown.at - t[i] > Math.max(15, 4 * vehicle.track.w)) continue;
      pen.fillStyle = vehicle === this.chosen ? palette.accent : palette.text;
      pen.beginPath();
      pen.arc(this.px(x[i]), this.py(y[i]), vehicle === this.chosen ? 5.5 : 3, 0, 2 * Math.PI);
      pen.fill();
      if (vehicles.length > 1 && named++ < NAMED) this.name(pen, vehicle.name, this.px(x[i]) + 8, this.py(y[i]) - 6);
    }
  }

  /** @type {(pen: Pen, words: string, x: number, y: number) => void} */
  name(pen, words, x, y) {
    pen.font = `600 11px ${fonts.text}`;
    pen.lineWidth = 3;
    pen.strokeStyle = palette.halo;
    pen.strokeText(words, x, y);
    pen.fillStyle = palette.text;
    pen.fillText(words, x, y);
  }
}
