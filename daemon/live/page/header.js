// The bar on top: are we connected, how many are there, how many alarms, how fast does it flow.

import { SEVERITIES } from './alarms.js';
import { sparkline } from './charts.js';
import { by, setText } from './dom.js';
import { symptoms } from './fold.js';
import { duration_ms, short, span, tally } from './units.js';

const SPARK = 90;
// A daemon to which nothing comes for so long says so: that there are no alarms then is no news, seconds.
const QUIET = 30;

export class Header {
  constructor() {
    /** @type {number[]} */
    this.rates = [];
    this.heard = performance.now();
    setInterval(() => this.age(), 1000);
  }

  /** @type {(word: string, detail: string) => void} */
  state(word, detail) {
    by('link').dataset.state = word;
    setText(by('link-text'), detail);
  }

  /** @type {(picture: Picture, recorded: boolean) => void} */
  take(picture, recorded) {
    this.heard = performance.now();
    const { figures, vehicles, state, warnings, unwatched } = picture;
    // that a log has ended is no trouble
    if (recorded) this.state(warnings.length ? 'warned' : 'live', warnings[0] ?? 'replay');
    else if (state.length) this.state('waiting', state[0]);
    else if (warnings.length) this.state('warned', warnings[0]);
    else if (figures.quiet_s >= QUIET) this.state('warned', `no message for ${span(figures.quiet_s)}`);
    else if (unwatched) this.state('warned', `${unwatched.toLocaleString('en')} not watched, see the alarms`);
    else this.state('live', 'live');
    this.rates.push(figures.messages_per_s);
    if (this.rates.length > SPARK) this.rates.shift();
    if (!recorded) setText(by('f-vehicles'), vehicles.toLocaleString('en'));
    setText(by('f-rate'), short(figures.messages_per_s));
    setText(by('f-lag'), figures.lag_s === null ? '–' : `${figures.lag_s.toFixed(1)} s`);
    setText(by('f-turn'), duration_ms(figures.turn_ms));
    setText(by('f-dropped'), tally(figures.dropped));
    sparkline(by('spark'), this.rates);
  }

  /** A connection that says nothing is not alive, whatever the browser thinks. */
  age() {
    const quiet = (performance.now() - this.heard) / 1000;
    if (quiet > 4) this.state('lost', `nothing heard for ${span(quiet)}`);
  }

  /** @type {(rows: AlarmRow[]) => void} */
  alarms(rows) {
    const count = { warning: 0, caution: 0, advisory: 0 };
    let open = 0;
    /** @type {Severity} */
    let worst = 'advisory';
    const active = rows.filter(({ state }) => state !== 'cleared');
    const explained = symptoms(active);
    for (const { severity, alarm } of active) {
      // an incident counts for what it explains
      if (alarm.shelved || explained.has(alarm.id)) continue;
      count[severity]++;
      if (alarm.ack) continue;
      open++;
      if (SEVERITIES.indexOf(severity) > SEVERITIES.indexOf(worst)) worst = severity;
    }
    for (const [severity, n] of Object.entries(count)) setText(by(`f-${severity}`), String(n));
    by('unseen').hidden = !open;
    by('unseen').dataset.severity = worst;
    setText(by('unseen'), String(open));
    document.title = count.warning ? `(${count.warning}) Watchkeeper` : 'Watchkeeper';
  }
}
