// One vehicle through the history: its track, its scores by kind, its residual channels, and when it had alarms.

import { ask } from './api.js';
import { SEVERITIES } from './alarms.js';

// While the newest is shown, charts are asked for again this often; between two answers they stand.
const AGAIN_MS = 5000;
// Of the charts of a past moment so much lies after it.
const AFTER = 0.3;
export const SPANS_S = { '10 min': 600, '1 h': 3600, all: Infinity };

/** @type {VehicleStory} */
const NOTHING = { id: '', from: NaN, to: NaN, track: null, scores: null, residuals: null, spans: [] };

export class VehiclePast {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.story = NOTHING;
    this.span_s = SPANS_S['10 min'];
    this.asked = '';
    this.askedAt = -Infinity;
    this.busy = false;
  }

  /**
   * From when to when charts go, for the moment that is shown.
   * @type {() => [from: number, to: number]}
   */
  window() {
    const [first, last] = this.app.timeline.extent();
    const { paused } = this.app.timeline;
    const end = this.app.recorded && paused === null ? this.app.newest?.t ?? last : last;
    const to = paused === null ? end : Math.min(last, paused + AFTER * this.span_s);
    return [Math.max(first, to - this.span_s), to];
  }

  /**
   * What is known of this vehicle; more is asked for when it is old, or of another moment.
   * @type {(id: string) => VehicleStory}
   */
  of(id) {
    const [from, to] = this.window();
    const { paused } = this.app.timeline;
    const key = `${id}|${this.span_s}|${paused === null ? 'now' : Math.round(to)}`;
    const due = key !== this.asked || (paused === null && performance.now() - this.askedAt > AGAIN_MS);
    if (due && !this.busy && this.app.past.kept && to > from) void this.ask(id, key, from, to);
    return this.story.id === id ? this.story : NOTHING;
  }

  /** @type {(id: string, key: string, from: number, to: number) => Promise<void>} */
  async ask(id, key, from, to) {
    [this.asked, this.askedAt, this.busy] = [key, performance.now(), true];
    const [path, params] = [`/vehicles/${encodeURIComponent(id)}`, { t0: from, t1: to }];
    /** @type {[VehicleTrack | null, Channels | null, Channels | null, AlarmPage | null]} */
    const [track, scores, residuals, alarms] = await Promise.all([
      ask(`${path}/track`, params).catch(() => null), ask(`${path}/scores`, params).catch(() => null),
      ask(`${path}/residuals`, params).catch(() => null), ask('/alarms', { subject: id, ...params, limit: 200 }).catch(() => null),
    ]);
    this.busy = false;
    const spans = (alarms?.alarms ?? []).map(({ event, t_raised, t_cleared }) => ({ from: t_raised, to: t_cleared ?? Infinity, rank: SEVERITIES.indexOf(event.severity) }));
    this.story = { id, from, to, track, scores, residuals, spans };
    if (this.app.selected === id) this.app.vehicle.render();
  }
}
