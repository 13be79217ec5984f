// A moment of the past, from the daemon's history: the picture of then, and each alarm with the evidence of then.

import { Alarm, rowsOf } from './alarms.js';
import { ask, pictureAt, Refused } from './api.js';
import { TRAIL_S } from './ground.js';

// Of an alarm that has ended, so long is told.
const LATELY_S = 600;
const MOST = 1000;
// Pictures that make the trails of a past moment.
const TRAIL_STEPS = 5;
const AGAIN_MS = 500;
const TRIES = 10;

export class Past {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** Whether the daemon keeps a history at all. */
    this.kept = true;
    /** The moment that `rows` are of, and the one that is wanted.
     * @type {number | null}
     */
    this.t = null;
    /** @type {number | null} */
    this.wanted = null;
    this.busy = false;
    /** @type {AlarmRow[]} */
    this.rows = [];
    /** @type {Picture[]} newest first */
    this.pictures = [];
    this.problem = '';
    this.checked = NaN;
    this.tries = 0;
  }

  /**
   * Show this moment, as soon as it is here. Of many that are asked for in a row the last one counts.
   * @type {(t: number) => void}
   */
  show(t) {
    this.wanted = t;
    if (!this.busy) void this.follow();
  }

  leave() {
    this.wanted = this.t = null;
    this.pictures = [];
  }

  /** Ask again for the moment that is shown: somebody acknowledged or shelved. */
  again() {
    if (this.wanted === null) return;
    this.t = null;
    this.show(this.wanted);
  }

  async follow() {
    this.busy = true;
    while (this.wanted !== null && this.wanted !== this.t) {
      const t = this.wanted;
      try {
        const near = this.app.timeline.inTab(t);
        const [rows, picture] = await Promise.all([alarmsAt(t), near ? null : pictureAt(t)]);
        this.problem = '';
        if (this.wanted === null) break;
        [this.t, this.rows] = [t, rows];
        this.pictures = picture ? [picture] : [];
        this.app.pastCame(picture);
        this.check(t);
      } catch (error) {
        this.failed(error);
        break;
      }
    }
    this.busy = false;
    if (this.wanted !== null && this.pictures.length) await this.trail(this.wanted);
  }

  /**
   * What happened a moment ago may not be in the history yet: ask again while an alarm is missing that this page knows.
   * @type {(t: number) => void}
   */
  check(t) {
    const known = new Set(this.rows.map(({ alarm }) => alarm.id));
    const missing = !this.app.recorded && this.app.alarms.list(t).some(({ alarm, state }) => state !== 'cleared' && !known.has(alarm.id));
    this.tries = missing && this.checked === t ? this.tries + 1 : 0;
    this.checked = t;
    if (missing && this.tries < TRIES) setTimeout(() => this.wanted === t && this.again(), AGAIN_MS);
  }

  /** @type {(error: unknown) => void} */
  failed(error) {
    if (error instanceof Refused && error.status === 503) this.kept = false;
    this.problem = error instanceof Error ? error.message : String(error);
    this.app.pastCame(null);
  }

  /**
   * Where everybody came from, once the slider rests.
   * @type {(t: number) => Promise<void>}
   */
  async trail(t) {
    for (let i = 1; i <= TRAIL_STEPS && this.wanted === t && this.t === t; i++) {
      const picture = await pictureAt(t - i * TRAIL_S / TRAIL_STEPS).catch(() => null);
      if (!picture || this.t !== t) return;
      this.pictures.push(picture);
      this.app.map.groundStale = true;
    }
  }

  /**
   * The alarms of this moment; null as long as they are not here.
   * @type {(t: number) => AlarmRow[] | null}
   */
  rowsAt(t) {
    return this.t === t ? this.rows : null;
  }
}

/**
 * Alarms that were active at t, each with its last event up to then, and those that had ended shortly before.
 * @type {(t: number) => Promise<AlarmRow[]>}
 */
async function alarmsAt(t) {
  /** @type {[AlarmPage, AlarmPage]} */
  const [active, ended] = await Promise.all([
    ask('/alarms', { at: t, limit: MOST }),
    ask('/alarms', { t0: t - LATELY_S, t1: t, active: false, limit: MOST }),
  ]);
  const over = ended.alarms.filter(({ t_cleared }) => t_cleared !== null && t_cleared <= t);
  return rowsOf([...active.alarms, ...over].map(alarmOf));
}

/**
 * An alarm of the history as the list shows it.
 * @type {(found: AlarmFound) => Alarm}
 */
export function alarmOf(found) {
  // the sentence of the row is that of the alarm's last event
  const alarm = new Alarm(found.event, found.event.say || (found.event.t === found.t ? found.say : ''));
  alarm.ack = found.acknowledged && { t: found.acknowledged.t_wall, by: found.acknowledged.by };
  alarm.shelved = found.shelved;
  return alarm;
}
