// Search over the whole history: the filters of the alarm list as a question to the API, page by page, and as a download.

import { addressOf, ask, whyNot } from './api.js';
import { SEVERITIES } from './alarms.js';
import { by, setText } from './dom.js';
import { alarmOf } from './past.js';

const WAIT_MS = 250;
const PAGE = 50;
/** @type {Record<string, number>} */
const SPANS = { hour: 3600, day: 86400 };

export class Search {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {Alarm[]} */
    this.found = [];
    this.total = this.symptoms = 0;
    /** @type {string | null} */
    this.next = null;
    this.problem = '';
    this.asked = 0;
    this.loading = false;
    this.lent = false;
    /** @type {number | undefined} */
    this.due = undefined;
    by('q').oninput = () => this.changed();
    by('when').onchange = () => this.changed();
    by('alarms-next').onclick = () => this.more();
  }

  /** Whether the list shows what was found, not what there is at the moment that is shown. */
  get on() {
    return by('q').value.trim() !== '' || by('when').value !== '';
  }

  /**
   * All alarms about a vehicle.
   * @type {(id: string) => void}
   */
  about(id) {
    by('q').value = id;
    this.app.showPane('alarms');
    this.changed();
  }

  /** The filters changed: ask soon, and show that in the address. */
  changed() {
    clearTimeout(this.due);
    // a word is looked for in the whole history, unless a part of it is chosen
    const words = by('q').value.trim() !== '';
    if (words && !by('when').value) [this.lent, by('when').value] = [true, 'all'];
    else if (!words && this.lent) [this.lent, by('when').value] = [false, ''];
    this.asked++;
    this.loading = this.on;
    this.due = setTimeout(() => this.ask(null), WAIT_MS);
    this.links();
    this.app.address.changed(false);
    this.app.list.render();
  }

  /**
   * The question, as the API is asked it.
   * @type {() => Params}
   */
  params() {
    const { severities, kind, cleared } = this.app.list.filter;
    const [, last] = this.app.timeline.extent();
    const span_s = SPANS[by('when').value];
    return {
      text: by('q').value.trim(), kind, severity: severities.size < SEVERITIES.length ? [...severities] : '',
      active: cleared ? null : true, t0: span_s ? last - span_s : null,
    };
  }

  more() {
    if (this.next && !this.loading) void this.ask(this.next);
  }

  /** @type {(cursor: string | null) => Promise<void>} */
  async ask(cursor) {
    const mine = ++this.asked;
    if (!this.on) {
      [this.found, this.total, this.next, this.loading] = [[], 0, null, false];
      return;
    }
    this.loading = true;
    try {
      /** @type {AlarmPage} */
      const page = await ask('/alarms', { ...this.params(), limit: PAGE, cursor });
      if (mine !== this.asked) return;
      this.found = [...(cursor ? this.found : []), ...page.alarms.map(alarmOf)];
      [this.total, this.symptoms, this.next, this.problem] = [page.total, page.symptoms, page.next, ''];
    } catch (error) {
      if (mine !== this.asked) return;
      [this.found, this.total, this.next, this.problem] = [[], 0, null, whyNot(error)];
    }
    this.loading = false;
    this.app.list.render();
  }

  /**
   * What was found, newest first, each as it ended.
   * @type {() => AlarmRow[]}
   */
  rows() {
    return this.found.map((alarm) => {
      const { state, severity, score } = alarm.event;
      return { alarm, state, severity, score, rank: SEVERITIES.indexOf(severity), later: false };
    });
  }

  /** Download what the filters let through: everything, or what there was at the moment that is shown. */
  links() {
    const at = this.on ? null : this.app.shownTime() ?? null;
    by('csv').href = addressOf('/alarms', { ...this.params(), at, format: 'csv' });
    by('json').href = addressOf('/alarms', { ...this.params(), at, limit: 1000 });
  }

  /** @type {(rows: number) => string} */
  words(rows) {
    if (this.problem) return this.problem;
    if (this.loading && !rows) return 'Searching …';
    if (!this.total) return 'Nothing in the history fits.';
    const symptoms = this.symptoms ? `, ${this.symptoms.toLocaleString('en')} of them symptoms` : '';
    return `${rows < this.total ? `${rows} of ${this.total.toLocaleString('en')}` : `${this.total.toLocaleString('en')} found`}${symptoms}`;
  }

  /** @type {(rows: number) => void} */
  render(rows) {
    by('alarms-next').hidden = !(this.on && this.next);
    setText(by('found-words'), this.on ? this.words(rows) : '');
  }
}
