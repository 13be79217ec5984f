// The moment that is shown: now, or any moment of the history. The slider, its window, and the alarms above it.

import { SEVERITIES } from './alarms.js';
import { ask } from './api.js';
import { by, penOf, setText } from './dom.js';
import { palette } from './palette.js';
import { clock } from './units.js';

const STEP_S = 5;
const STEPS = 240;
// While nothing happens the history's extent is asked for this often; after an alarm sooner.
const POLL_MS = 5000;
const SOON_MS = 700;

export class Timeline {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** The moment of the slider; null while the newest is shown.
     * @type {number | null}
     */
    this.paused = null;
    /** What the history has.
     * @type {TimelineAnswer | null}
     */
    this.known = null;
    this.span_s = Infinity;
    /** @type {number | null} the end of a window that was chosen while looking back */
    this.anchor = null;
    this.asking = false;
    this.tries = 0;
    /** @type {number | null} */
    this.due = null;
    this.scrub = by('scrub');
    this.scrub.oninput = () => this.show(this.window()[0] + Number(this.scrub.value));
    this.scrub.onkeydown = (event) => {
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -60, PageUp: 60 }[event.key];
      if (!steps) return;
      this.step(steps);
      event.preventDefault();
    };
    by('span').onchange = () => this.zoom(Number(by('span').value) || Infinity);
    by('play').onclick = () => this.toggle();
    by('live').onclick = () => this.live();
    by('back').onclick = () => this.stepBack();
    by('on').onclick = () => this.stepOn();
    setInterval(() => document.hidden || this.soon(0), POLL_MS);
    this.soon(0);
  }

  // -- what there is --------------------------------------------------------------------------------------------

  /** @type {(ms?: number) => void} */
  soon(ms = SOON_MS) {
    this.due ??= setTimeout(() => {
      this.due = null;
      void this.refresh();
    }, ms);
  }

  async refresh() {
    const { past, newest } = this.app;
    // before the first sample there is nothing; where no history is kept, now and then it is asked whether one is
    if (this.asking || (newest?.t ?? null) === null || (!past.kept && ++this.tries % 12)) return;
    this.asking = true;
    const [t0, t1] = this.span_s === Infinity ? [null, null] : this.window();
    try {
      this.known = await ask('/timeline', { steps: STEPS, t0, t1 });
      past.kept = true;
      if (this.known?.era === null) this.soon();
    } catch {
      past.kept = this.known !== null;
    }
    this.asking = false;
    this.render();
  }

  /**
   * Whether this tab itself has the picture of this moment. A recording is always asked for.
   * @type {(t: number) => boolean}
   */
  inTab(t) {
    const { history, recorded } = this.app;
    return !recorded && history.entries.length > 0 && t >= history.first && t <= history.last + 1;
  }

  /**
   * The whole past that can be shown, in event time.
   * @type {() => [from: number, to: number]}
   */
  extent() {
    const era = this.known?.eras.find(({ era }) => era === this.known?.era);
    const { history, newest, recorded, playback } = this.app;
    const ends = [era?.t_last, playback.state?.t_last, recorded ? NaN : history.last, recorded ? NaN : newest?.t ?? NaN];
    const begins = [era?.t_first, recorded ? NaN : history.first];
    /** @type {(x: number | null | undefined) => x is number} */
    const there = (x) => typeof x === 'number' && x === x;
    return [Math.min(...begins.filter(there)), Math.max(...ends.filter(there))];
  }

  /**
   * The part of it that the slider goes over.
   * @type {() => [from: number, to: number]}
   */
  window() {
    const [from, to] = this.extent();
    if (to - from <= this.span_s) return [from, to];
    const end = this.paused === null ? to : Math.min(to, this.anchor ?? to);
    return [Math.max(from, end - this.span_s), end];
  }

  /** @type {(span_s: number) => void} */
  zoom(span_s) {
    this.span_s = span_s;
    this.anchor = this.paused === null || span_s === Infinity ? null : this.paused + span_s / 2;
    this.render();
    void this.refresh();
  }

  // -- going there ----------------------------------------------------------------------------------------------

  /** Stop at the present moment, or go on: in a recording from here, else with the newest. */
  toggle() {
    const { recorded, playback } = this.app;
    if (this.paused === null) {
      if (recorded) playback.pause();
      this.show(this.app.fleet.picture?.t ?? undefined);
    } else if (recorded) {
      playback.play(this.paused);
    } else {
      this.live();
    }
  }

  /** @type {(seconds: number) => void} */
  step(seconds) {
    if (this.app.recorded && this.paused === null) this.app.playback.pause();
    this.show((this.paused ?? this.app.fleet.picture?.t ?? NaN) + seconds);
  }

  stepBack() { this.step(-STEP_S); }
  stepOn() { this.step(STEP_S); }

  /**
   * Show a moment: from this tab's own memory if it is there, and from the history.
   * @type {(t: number | null | undefined, how?: { push?: boolean }) => void}
   */
  show(t, { push = false } = {}) {
    const { history, past } = this.app;
    if (t === null || t === undefined || t !== t) return;
    const [from, to] = this.extent();
    // as long as the extent of the history is not known, any moment may be in it
    const sure = to >= from && (!past.kept || (this.known?.era ?? null) !== null);
    this.paused = sure ? Math.max(from, Math.min(to, t)) : t;
    const [first, last] = this.window();
    if (this.paused < first || this.paused > last) this.anchor = this.paused + this.span_s / 2;
    if (this.inTab(this.paused)) {
      const at = history.find(this.paused);
      if (!past.kept) this.paused = history.entries[at].t;
      this.app.shown(history.copy(at));
    }
    if (past.kept) past.show(this.paused);
    this.changed();
    this.app.address.changed(push);
  }

  /** Back to the newest: now, or where a recording is being played. */
  live() {
    if (this.paused === null && !this.app.recorded) return;
    if (this.app.recorded) this.app.playback.toEnd();
    this.follow();
  }

  /** Show what comes from the daemon from here on. */
  follow() {
    this.paused = this.anchor = null;
    this.app.past.leave();
    this.changed();
    if (this.app.newest && !this.app.recorded) this.app.shown(this.app.newest);
    this.app.alarmsChanged();
    this.app.address.changed(true);
  }

  changed() {
    document.body.classList.toggle('paused', this.paused !== null);
    by('live').setAttribute('aria-pressed', String(this.paused === null && !(this.app.recorded && !this.app.playback.ended())));
    by('play').setAttribute('aria-label', this.paused === null ? 'Pause' : 'Go on');
    this.render();
  }

  // -- on the screen --------------------------------------------------------------------------------------------

  render() {
    const [from, to] = this.window();
    const [first, last] = this.extent();
    this.scrub.disabled = !(to > from);
    by('span').hidden = !(last - first > 700);
    const at = this.paused ?? this.app.newest?.t ?? to;
    if (to > from) {
      this.scrub.max = String(to - from);
      this.scrub.value = String(Math.max(0, at - from));
    }
    const words = clock(this.paused ?? this.app.newest?.t_now);
    setText(by('clock'), words);
    this.scrub.setAttribute('aria-valuetext', words);
    this.drawEvents(from, to);
  }

  /**
   * Behind the slider: a bar where alarms were raised, as high as the worst of them.
   * @type {(from: number, to: number) => void}
   */
  drawEvents(from, to) {
    const canvas = by('events');
    const ratio = Math.min(devicePixelRatio || 1, 2);
    const { clientWidth: width, clientHeight: height } = canvas;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = penOf(canvas);
    pen.scale(ratio, ratio);
    pen.fillStyle = palette['line-strong'];
    pen.fillRect(0, height - 2, width, 1);
    if (!(to > from)) return;
    /** @type {(t: number, rank: number) => void} */
    const tick = (t, rank) => {
      if (t < from || t > to) return;
      pen.fillStyle = palette[SEVERITIES[rank]];
      pen.fillRect(Math.min((t - from) / (to - from) * width, width - 2), height - 8 - 6 * rank, 2, 6 + 6 * rank);
    };
    for (const { t, by_severity } of this.known?.steps ?? []) {
      tick(t, SEVERITIES.findLastIndex((name) => by_severity[name]));
    }
    // those that came since the history was asked
    const { all } = this.app.alarms;
    for (const { event } of all.values()) {
      if (!all.has(event.incident ?? '') && event.t_raised > (this.known?.t1 ?? -Infinity)) tick(event.t_raised, SEVERITIES.indexOf(event.severity));
    }
  }
}
