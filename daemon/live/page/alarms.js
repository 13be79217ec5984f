// Alarms by id, each with the steps of its life; and any of them as the rows of a list, in order.

/** @type {Severity[]} */
export const SEVERITIES = ['advisory', 'caution', 'warning'];
const LIFE_STEPS = 60;
const KEEP_CLEARED = 300;

/** One alarm: its newest event, the sentence that says it, and the steps of its life: [t, state, severity, score]. */
export class Alarm {
  /**
   * @param {AlarmEvent} event
   * @param {string} [say]
   */
  constructor(event, say) {
    this.id = event.id;
    this.event = event;
    /** The alarm as one sentence, from the server. */
    this.say = '';
    /** @type {[t: number, state: AlarmState, severity: Severity, score: number][]} */
    this.life = [];
    /** @type {Acknowledgement | null} */
    this.ack = null;
    /** The shelf that it is on.
     * @type {string | null}
     */
    this.shelved = null;
    this.shownAt = performance.now();
    this.take(event, say);
  }

  /** @type {(event: AlarmEvent, say?: string) => void} */
  take(event, say) {
    this.event = event;
    this.say = event.say || say || '';
    const last = this.life[this.life.length - 1];
    if (last && last[0] === event.t && last[1] === event.state) return;
    // the beginning stays: it says when it was raised
    if (this.life.length >= LIFE_STEPS) this.life.splice(1, 1);
    if (!this.life.length && event.state !== 'raised') this.life.push([event.t_raised, 'raised', event.severity, event.score]);
    this.life.push([event.t, event.state, event.severity, event.score]);
  }

  /**
   * Its state at time t (undefined: now); null before it was raised.
   * @type {(t?: number) => { state: AlarmState, severity: Severity, score: number } | null}
   */
  at(t) {
    const { event } = this;
    if (t === undefined) return { state: event.state, severity: event.severity, score: event.score };
    if (event.t_raised > t) return null;
    /** @type {{ state: AlarmState, severity: Severity, score: number } | null} */
    let found = null;
    for (const [when, state, severity, score] of this.life) if (when <= t) found = { state, severity, score };
    return found;
  }
}

export class Alarms {
  constructor() {
    /** @type {Map<string, Alarm>} */
    this.all = new Map();
    this.version = 0;
    /** @type {Record<string, string[]>} causes that last until a person accepts them, by the alarm's kind */
    this.accepts = {};
    /** @type {{ version: number, t: number | undefined, rows: AlarmRow[] } | null} */
    this.listed = null;
  }

  /**
   * Take the whole list; the history of alarms that go on is kept.
   * @type {(message: AlarmsMessage) => void}
   */
  reset({ alarms, acknowledged, say, accepts, shelved = {}, recorded }) {
    this.accepts = accepts;
    // a recording may have been played back: what was known later is not known now
    const before = recorded ? new Map() : this.all;
    this.all = new Map();
    for (const event of alarms) {
      const alarm = before.get(event.id);
      if (alarm) alarm.take(event, say[event.id]);
      this.all.set(event.id, alarm ?? new Alarm(event, say[event.id]));
    }
    for (const alarm of this.all.values()) {
      alarm.ack = acknowledged[alarm.id] ?? null;
      alarm.shelved = shelved[alarm.id] ?? null;
    }
    this.version++;
  }

  /**
   * Alarms of the history that have ended; those that are known already stay as they are.
   * @type {(ended: Alarm[]) => void}
   */
  remember(ended) {
    this.version++;
    const now = this.all;
    this.all = new Map(ended.filter(({ id }) => !now.has(id)).map((alarm) => [alarm.id, alarm]));
    for (const [id, alarm] of now) this.all.set(id, alarm);
    this.forget();
  }

  /**
   * One piece of news: an event, or an acknowledgement. Returns an alarm that is new.
   * @type {(news: News) => Alarm | null}
   */
  take(news) {
    this.version++;
    if ('acknowledged' in news) {
      const alarm = this.all.get(news.acknowledged);
      if (alarm) alarm.ack = news.by;
      return null;
    }
    const known = this.all.get(news.event.id);
    if (known) {
      known.take(news.event, news.say);
      known.shelved = news.shelved ?? null;
      return null;
    }
    const alarm = new Alarm(news.event, news.say);
    alarm.shelved = news.shelved ?? null;
    this.all.set(alarm.id, alarm);
    this.forget();
    return alarm;
  }

  /**
   * Whether the alarm is about a state that lasts until a person accepts it.
   * @type {(event: AlarmEvent) => boolean}
   */
  acceptable({ kind, evidence, state }) {
    return state !== 'cleared' && (this.accepts[kind] ?? []).some((cause) => evidence.causes?.includes(cause));
  }

  forget() {
    let cleared = 0;
    for (const alarm of this.all.values()) if (alarm.event.state === 'cleared') cleared++;
    for (const [id, alarm] of this.all) {
      if (cleared <= KEEP_CLEARED) return;
      if (alarm.event.state === 'cleared') {
        this.all.delete(id);
        cleared--;
      }
    }
  }

  /**
   * What there was to see at t (undefined: now): unacknowledged and severe first, ended ones last.
   * @type {(t?: number) => AlarmRow[]}
   */
  list(t) {
    if (this.listed?.version === this.version && this.listed.t === t) return this.listed.rows;
    const rows = rowsOf(this.all.values(), t);
    this.listed = { version: this.version, t, rows };
    return rows;
  }
}

/**
 * Alarms as they were at t (undefined: now): unacknowledged and severe first, ended ones last.
 * @type {(alarms: Iterable<Alarm>, t?: number) => AlarmRow[]}
 */
export function rowsOf(alarms, t) {
  /** @type {AlarmRow[]} */
  const rows = [];
  for (const alarm of alarms) {
    const was = alarm.at(t);
    if (was) rows.push({ alarm, ...was, rank: SEVERITIES.indexOf(was.severity), later: t !== undefined && alarm.event.t > t });
  }
  /** @type {(row: AlarmRow) => number} */
  const group = (row) => (row.state === 'cleared' ? 3 : row.alarm.shelved ? 2 : row.alarm.ack ? 1 : 0);
  return rows.sort((p, q) => group(p) - group(q)
    || (p.state === 'cleared' ? q.alarm.event.t - p.alarm.event.t : q.rank - p.rank)
    || q.alarm.event.t_raised - p.alarm.event.t_raised || (p.alarm.id < q.alarm.id ? -1 : 1));
}

/**
 * Active alarms by vehicle id: the highest rank, and whether one of them asks for attention.
 * @type {(rows: AlarmRow[]) => Map<string, { rank: number, open: boolean }>}
 */
export function marksOf(rows) {
  /** @type {Map<string, { rank: number, open: boolean }>} */
  const found = new Map();
  for (const { alarm, state, rank } of rows) {
    if (state === 'cleared' || alarm.event.kind === 'incident' || alarm.shelved) continue;
    for (const id of alarm.event.subjects) {
      const before = found.get(id);
      found.set(id, { rank: Math.max(rank, before?.rank ?? -1), open: !alarm.ack || Boolean(before?.open) });
    }
  }
  return found;
}
