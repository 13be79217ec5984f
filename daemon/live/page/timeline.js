// Time: the moment that is shown, the clock of the stream between two pictures, pause, and the slider over the past.

import { SEVERITIES } from './alarms.js';
import { by, penOf, setText } from './dom.js';
import { palette } from './palette.js';
import { clock } from './units.js';

// How much of a new reading of the clock is believed at once: the rest follows, so that nothing jerks.
const TRUST = 0.25;
const JUMP_S = 2;
const STEP_S = 5;

/** The stream's time by the wall clock, whatever its speed. */
export class StreamClock {
  constructor() {
    this.rate = 1;
    this.t = NaN;
    /** @type {{ t: number, now: number } | null} */
    this.seen = null;
    /** @type {number | null} */
    this.at = null;
  }

  /**
   * A picture says that the newest sample is of time t.
   * @type {(t: number | null, now?: number) => void}
   */
  read(t, now = performance.now()) {
    if (t === null) return;
    const guess = this.now(now);
    if (this.seen && now > this.seen.now + 100) {
      const rate = (t - this.seen.t) / ((now - this.seen.now) / 1000);
      this.rate += (Math.max(0, Math.min(200, rate)) - this.rate) * (Math.abs(rate - this.rate) > 0.5 ? 1 : 0.2);
    }
    this.seen = { t, now };
    this.t = Math.abs(t - guess) < JUMP_S * Math.max(1, this.rate) ? guess + (t - guess) * TRUST : t;
    this.at = now;
  }

  /** @type {(now?: number) => number} */
  now(now = performance.now()) {
    // no prediction reaches further than two pictures
    return this.t + this.rate * Math.min(2.5, (now - (this.at ?? now)) / 1000);
  }
}

export class Timeline {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {number | null} */
    this.paused = null;
    this.scrub = by('scrub');
    this.scrub.oninput = () => this.show(app.history.entries[Number(this.scrub.value)]?.t);
    by('play').onclick = () => this.toggle();
    by('live').onclick = () => this.live();
  }

  /** Stop at the present moment, or go on with the newest. */
  toggle() {
    if (this.paused === null) this.show(this.app.history.last); else this.live();
  }

  /** @type {(seconds: number) => void} */
  step(seconds) {
    this.show((this.paused ?? this.app.history.last) + seconds);
  }

  stepBack() { this.step(-STEP_S); }
  stepOn() { this.step(STEP_S); }

  /** @type {(t: number | undefined) => void} */
  show(t) {
    const { history } = this.app;
    if (!history.entries.length || t === undefined || t !== t) return;
    const at = history.find(t);
    this.paused = history.entries[at].t;
    this.changed();
    this.app.shown(history.copy(at));
  }

  live() {
    this.paused = null;
    this.changed();
    if (this.app.newest) this.app.shown(this.app.newest);
  }

  changed() {
    document.body.classList.toggle('paused', this.paused !== null);
    by('live').setAttribute('aria-pressed', String(this.paused === null));
    by('play').setAttribute('aria-label', this.paused === null ? 'Pause' : 'Go on');
    this.render();
  }

  render() {
    const { history } = this.app;
    const last = history.entries.length - 1;
    this.scrub.disabled = last < 1;
    this.scrub.max = String(Math.max(0, last));
    const at = this.paused === null ? last : history.find(this.paused);
    this.scrub.value = String(Math.max(0, at));
    const words = clock(this.paused ?? this.app.newest?.t_now);
    setText(by('clock'), words);
    this.scrub.setAttribute('aria-valuetext', words);
    this.drawEvents();
  }

  /** Behind the slider: the message rate, and a tick where each alarm was raised. */
  drawEvents() {
    const canvas = by('events');
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = penOf(canvas);
    pen.scale(ratio, ratio);
    const { entries } = this.app.history;
    if (entries.length < 2) return;
    const high = entries.reduce((most, { rate }) => Math.max(most, rate), 1);
    pen.fillStyle = palette.raised;
    const wide = width / (entries.length - 1);
    entries.forEach(({ rate }, i) => pen.fillRect(i * wide, height - 2 - rate / high * (height - 8), wide + 0.5, rate / high * (height - 8)));
    pen.fillStyle = palette['line-strong'];
    pen.fillRect(0, height - 2, width, 1);
    for (const { event } of this.app.alarms.all.values()) {
      if (event.t_raised < entries[0].t || event.kind === 'incident') continue;
      const x = this.app.history.find(event.t_raised) * wide;
      const rank = SEVERITIES.indexOf(event.severity);
      pen.fillStyle = palette[event.severity];
      pen.fillRect(Math.min(x, width - 2), height - 8 - 6 * rank, 2, 6 + 6 * rank);
    }
  }
}
