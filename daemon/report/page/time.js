// The time that all plots share: the part of the log that is shown, the moment that is pointed at, and who is told.

import { by, penOf } from '../../live/page/dom.js';
import { report } from './data.js';
import { palette } from '../../live/page/palette.js';
import { clock, span } from '../../live/page/units.js';

// No zoom goes further in than this, s.
const CLOSEST_S = 0.5;
// The slack at both ends of the log, as a part of it.
const SLACK = 0.01;

/** @type {(() => void)[]} */
const followers = [];
const whole = Math.max(report.t1 - report.t0, CLOSEST_S);

/** What is shown: `from` and `to`; `at` is the moment that is pointed at, NaN for none; `chosen` the alarm. */
export const shown = { from: 0, to: 1, at: NaN, chosen: '' };

/** @type {(listener: () => void) => void} */
export function onTime(listener) {
  followers.push(listener);
}

let asked = false;

/** Everybody draws again, with the next picture. */
export function redraw() {
  if (asked) return;
  asked = true;
  requestAnimationFrame(drawNow);
}

/** Everybody draws again at once: paper does not wait for the next picture. */
export function drawNow() {
  asked = false;
  for (const listener of followers) listener();
}

/** @type {(from: number, to: number) => void} */
export function showTime(from, to) {
  const wide = Math.min(Math.max(to - from, CLOSEST_S), whole * (1 + 2 * SLACK));
  const middle = (from + to) / 2;
  const first = Math.min(Math.max(middle - wide / 2, report.t0 - whole * SLACK), report.t1 + whole * SLACK - wide);
  [shown.from, shown.to] = [first, first + wide];
  redraw();
}

/** @type {() => void} */
export const showAll = () => showTime(report.t0 - whole * SLACK, report.t1 + whole * SLACK);

/**
 * Zoom by a factor around a moment; the middle if none is given.
 * @type {(factor: number, around?: number) => void}
 */
export function zoomTime(factor, around = (shown.from + shown.to) / 2) {
  showTime(around + (shown.from - around) * factor, around + (shown.to - around) * factor);
}

/**
 * Move by a part of what is shown.
 * @type {(part: number) => void}
 */
export function moveTime(part) {
  const by_s = part * (shown.to - shown.from);
  showTime(shown.from + by_s, shown.to + by_s);
}

/** @type {(t: number) => void} */
export function pointAt(t) {
  if (Object.is(shown.at, t)) return;
  shown.at = t;
  redraw();
}

/**
 * Show the span of an alarm with some time around it.
 * @type {(id: string) => void}
 */
export function showAlarm(id) {
  const alarm = report.alarms.find((each) => each.id === id);
  if (!alarm) return;
  const slack = Math.max(0.4 * (alarm.t1 - alarm.t0), 5);
  [shown.chosen, shown.at] = [id, alarm.worst];
  showTime(alarm.t0 - slack, alarm.t1 + slack);
}

/**
 * A time for people, with tenths where little of the log is shown.
 * @type {(t: number) => string}
 */
export function moment(t) {
  if (!report.unix || shown.to - shown.from > 60) return clock(t);
  return `${new Date(t * 1000).toISOString().slice(11, 21)}Z`;
}

const STEPS_S = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 604800];

/**
 * Times for the marks of an axis that is so many pixels wide.
 * @type {(width: number) => number[]}
 */
export function ticks(width) {
  const wide = shown.to - shown.from;
  const step = STEPS_S.find((s) => wide / s <= Math.max(2, width / 95)) ?? wide / 4;
  const found = [];
  for (let t = Math.ceil(shown.from / step) * step; t <= shown.to; t += step) found.push(t);
  return found;
}

/** The bar at the top: the whole log with its alarms, and the part that is shown. */
export class Overview {
  constructor() {
    this.canvas = /** @type {HTMLCanvasElement} */ (/** @type {unknown} */ (by('overview')));
    onTime(() => this.draw());
    /** @type {number | null} */
    let held = null;
    this.canvas.onpointerdown = (event) => {
      this.canvas.setPointerCapture(event.pointerId);
      held = this.time(event);
      if (held < shown.from || held > shown.to) showTime(held - (shown.to - shown.from) / 2, held + (shown.to - shown.from) / 2);
    };
    this.canvas.onpointermove = (event) => {
      if (held === null) return;
      const t = this.time(event);
      showTime(shown.from + t - held, shown.to + t - held);
      held = t;
    };
    this.canvas.onpointerup = this.canvas.onpointercancel = () => { held = null; };
    this.canvas.ondblclick = showAll;
  }

  /** @type {(event: PointerEvent) => number} */
  time(event) {
    const { left, width } = this.canvas.getBoundingClientRect();
    return report.t0 + (event.clientX - left) / width * whole;
  }

  draw() {
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    const pen = penOf(this.canvas);
    pen.scale(ratio, ratio);
    /** @type {(t: number) => number} */
    const x = (t) => (t - report.t0) / whole * width;
    pen.fillStyle = palette.raised;
    pen.fillRect(0, 0, width, height);
    for (const alarm of report.alarms) {
      const high = { advisory: 0.4, caution: 0.65, warning: 0.9 }[alarm.severity];
      pen.fillStyle = palette[alarm.severity];
      pen.globalAlpha = alarm.id === shown.chosen ? 1 : 0.75;
      pen.fillRect(x(alarm.t0), height * (1 - high), Math.max(2, x(alarm.t1) - x(alarm.t0)), height * high);
    }
    pen.globalAlpha = 0.55;
    pen.fillStyle = palette.ground;
    pen.fillRect(0, 0, x(shown.from), height);
    pen.fillRect(x(shown.to), 0, width, height);
    pen.globalAlpha = 1;
    pen.strokeStyle = palette.accent;
    pen.lineWidth = 2;
    const [left, right] = [Math.max(1, x(shown.from)), Math.min(width - 1, x(shown.to))];
    pen.strokeRect(left, 1, Math.max(3, right - left), height - 2);
    const words = Number.isFinite(shown.at) ? moment(shown.at) : `${clock(Math.max(shown.from, report.t0))} + ${span(Math.min(shown.to, report.t1) - Math.max(shown.from, report.t0))}`;
    by('window').textContent = words;
  }
}
