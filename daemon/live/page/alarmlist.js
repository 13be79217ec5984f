// The alarm list: who, what, how bad, since when; filters, acknowledge, and the whole story of the chosen one.

import { SEVERITIES } from './alarms.js';
import { accept, acknowledge, copyLink } from './doing.js';
import { by, el, setText, shape } from './dom.js';
import { folded, symptoms } from './fold.js';
import { shelf } from './shelve.js';
import { about, summary } from './story.js';
import { clock, span } from './units.js';

const MOST = 150;
// A second press within this time accepts.
const SURE_MS = 5000;
const [ACCEPT, SURE] = ['Accept position', 'Press again to end the alarm'];

export class AlarmList {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.list = by('alarms');
    /** @type {Map<string, Item>} by the alarm's id */
    this.rows = new Map();
    this.filter = { severities: new Set(SEVERITIES), kind: '', open: false, cleared: true };
    /** @type {Set<string>} */
    this.kinds = new Set();
    /** Incidents whose alarms are listed under them.
     * @type {Set<string>}
     */
    this.unfolded = new Set();
    this.pointed = false;
    for (const severity of SEVERITIES) {
      const chip = by(`chip-${severity}`);
      chip.onclick = () => {
        const { severities } = this.filter;
        if (!severities.delete(severity)) severities.add(severity);
        this.press(chip, severities.has(severity));
      };
    }
    by('only-open').onclick = () => this.press(by('only-open'), this.filter.open = !this.filter.open);
    by('with-cleared').onclick = () => this.press(by('with-cleared'), this.filter.cleared = !this.filter.cleared);
    by('kind').onchange = () => {
      this.filter.kind = by('kind').value;
      app.search.changed();
    };
    // rows keep their place while somebody points at them
    this.list.onpointerenter = () => { this.pointed = true; };
    this.list.onpointerleave = () => {
      this.pointed = false;
      this.render();
    };
  }

  /** @type {(chip: HTMLElement, on: boolean) => void} */
  press(chip, on) {
    chip.setAttribute('aria-pressed', String(on));
    this.app.search.changed();
  }

  /**
   * Filters as an address says them.
   * @type {(parts: Record<string, string>) => void}
   */
  restore({ severity, kind = '', open, cleared, q = '', when = '' }) {
    const wanted = severity ? severity.split(',') : SEVERITIES;
    this.filter = { severities: new Set(SEVERITIES.filter((name) => wanted.includes(name))), kind, open: open === '1', cleared: cleared !== '0' };
    for (const name of SEVERITIES) by(`chip-${name}`).setAttribute('aria-pressed', String(this.filter.severities.has(name)));
    by('only-open').setAttribute('aria-pressed', String(this.filter.open));
    by('with-cleared').setAttribute('aria-pressed', String(this.filter.cleared));
    if (kind) this.addKind(kind);
    by('kind').value = kind;
    by('q').value = q;
    by('when').value = when;
    this.app.search.changed();
  }

  /**
   * The rows that pass the filters, in order: of the moment that is shown, or what a search found.
   * @type {() => AlarmRow[]}
   */
  shown() {
    const { severities, kind, open, cleared } = this.filter;
    const { search } = this.app;
    const rows = search.on ? search.rows() : this.app.rows();
    return rows.filter((row) => (search.on || severities.has(row.severity))
      && (!kind || row.alarm.event.kind === kind) && (!open || !row.alarm.ack) && (cleared || row.state !== 'cleared'));
  }

  /**
   * With incidents first and what they explain folded under them. A search lists what it found, by time.
   * @type {() => Folded[]}
   */
  folded() {
    const rows = this.shown();
    if (this.app.search.on) return rows.map((row) => ({ row, explains: 0, under: false }));
    const chosen = this.app.chosen === null ? undefined : symptoms(rows).get(this.app.chosen);
    if (chosen !== undefined) this.unfolded.add(chosen);
    return folded(rows, this.unfolded);
  }

  /**
   * While somebody points at the list, rows that are there stay where they are, and new ones come last.
   * @type {(list: Folded[]) => Folded[]}
   */
  settled(list) {
    if (!this.pointed) return list;
    const place = new Map([...this.list.children].map((li, i) => [/** @type {HTMLElement} */ (li).dataset.id, i]));
    /** @type {(each: Folded) => number} */
    const at = ({ row }) => place.get(row.alarm.id) ?? Infinity;
    return list.some(({ under }) => under) ? list : [...list].sort((p, q) => (at(p) === at(q) ? 0 : at(p) - at(q)));
  }

  render() {
    const list = this.settled(this.folded());
    const now = this.app.now();
    for (const { row } of list) this.addKind(row.alarm.event.kind);
    /** @type {Set<string>} */
    const seen = new Set();
    /** @type {HTMLElement | null} */
    let before = null;
    for (const each of list.slice(0, MOST)) {
      const { id } = each.row.alarm;
      const item = this.rows.get(id) ?? this.make(id);
      this.update(item, each, now);
      seen.add(id);
      /** @type {ChildNode | null} */
      const wanted = before ? before.nextSibling : this.list.firstChild;
      if (item.li !== wanted) this.list.insertBefore(item.li, wanted);
      before = item.li;
    }
    for (const [id, item] of this.rows) {
      if (!seen.has(id)) {
        item.li.remove();
        this.rows.delete(id);
      }
    }
    this.app.search.render(list.length);
    const more = by('alarms-more');
    more.hidden = this.app.search.on || (list.length > 0 && list.length <= MOST);
    setText(more, list.length ? `and ${list.length - MOST} more` : this.app.past.problem || 'No alarms to show.');
  }

  /** @type {(kind: string) => void} */
  addKind(kind) {
    if (this.kinds.has(kind)) return;
    this.kinds.add(kind);
    const options = [...this.kinds].sort().map((k) => el('option', { value: k }, k.replaceAll('_', ' ')));
    by('kind').replaceChildren(el('option', { value: '' }, 'all kinds'), ...options);
    by('kind').value = this.filter.kind;
  }

  /** @type {(id: string) => Item} */
  make(id) {
    const [who, kind, sub, when] = [el('span.who'), el('span.kind'), el('span.sub'), el('span')];
    const [ack, accepts] = [el('button.ack', { type: 'button' }), el('button.accept', { type: 'button', hidden: true }, ACCEPT)];
    const [top, told, fold] = [el('span.top', {}, kind, who), el('div.told'), el('button.fold', { type: 'button', hidden: true })];
    const link = el('button.small', { type: 'button' }, 'Copy link');
    const about = el('div.about', { hidden: true }, told, el('div.acts', {}, link, el('span')));
    const open = el('button.open', { type: 'button' }, top, sub);
    const li = el('li.alarm', {}, open, el('div.side', {}, when, ack, accepts), fold, about);
    li.dataset.id = id;
    /** @type {Item} */
    const item = { li, open, top, kind, who, sub, when, ack, accept: accepts, fold, about, told, shape: null, version: '', story: '', of: '' };
    open.onclick = () => (this.app.chosen === id ? this.app.choose(null) : this.app.choose(id, { jump: this.app.search.on }));
    ack.onclick = () => acknowledge(this.app, id);
    accepts.onclick = () => this.accept(item, id);
    link.onclick = () => copyLink(this.app, id, link);
    fold.onclick = () => {
      if (!this.unfolded.delete(id)) this.unfolded.add(id);
      else if (this.app.chosen !== null) this.app.choose(null);
      this.render();
    };
    this.rows.set(id, item);
    return item;
  }

  /**
   * Ask once more, then accept: the alarm ends for everybody.
   * @type {(item: Item, id: string) => void}
   */
  accept(item, id) {
    if (item.accept.textContent !== SURE) {
      setText(item.accept, SURE);
      setTimeout(() => setText(item.accept, ACCEPT), SURE_MS);
      return;
    }
    setText(item.accept, ACCEPT);
    void accept(this.app, id);
  }

  /** @type {(item: Item, each: Folded, now: number) => void} */
  update(item, { row: { alarm, state, severity, later }, explains, under }, now) {
    const { event, ack, shelved } = alarm;
    const chosen = this.app.chosen === alarm.id;
    const who = event.subjects.map((id) => this.app.nameOf(id)).join(' × ');
    const version = `${severity}|${state}|${ack?.t}|${chosen}|${under}|${shelved}|${explains}|${this.unfolded.has(alarm.id)}`;
    if (item.version !== version) {
      item.version = version;
      item.li.dataset.severity = severity;
      const is = { cleared: state === 'cleared', acked: ack, chosen, under, shelved };
      item.li.className = ['alarm', ...Object.entries(is).filter(([, on]) => on).map(([name]) => name)].join(' ');
      item.shape?.remove();
      item.shape = shape(severity);
      item.top.prepend(item.shape);
      item.open.setAttribute('aria-expanded', String(chosen));
      setText(item.ack, ack ? 'acknowledged' : 'Acknowledge');
      item.ack.setAttribute('aria-pressed', String(Boolean(ack)));
      item.ack.title = ack ? `${ack.by || 'someone'}, ${clock(ack.t)}; press to take back` : '';
      item.about.hidden = !chosen;
      item.fold.hidden = !explains;
      item.fold.setAttribute('aria-expanded', String(this.unfolded.has(alarm.id)));
      setText(item.fold, `${this.unfolded.has(alarm.id) ? 'hide' : 'show'} ${explains} ${explains === 1 ? 'symptom' : 'symptoms'}`);
    }
    // of the moment before now that the slider shows nothing can be accepted
    item.accept.hidden = this.app.shownTime() !== undefined || !this.app.alarms.acceptable(event);
    setText(item.who, who);
    setText(item.kind, `${event.kind.replaceAll('_', ' ')}${shelved ? ', shelved' : ''}`);
    item.accept.setAttribute('aria-label', `Accept the position as true and end the alarm: ${who}`);
    item.ack.setAttribute('aria-label', `${ack ? 'Acknowledged' : 'Acknowledge'}: ${event.kind} ${who}`);
    item.open.setAttribute('aria-label', `${severity} ${event.kind} ${who}, ${state}`);
    const story = (state === 'cleared' ? event.say : alarm.say) || summary(event, state);
    if (item.story !== story) {
      item.story = story;
      item.sub.replaceChildren(...(story.includes('|') ? story.split('|').map((part, i) => el(i ? 'span' : 'b', {}, part)) : [el('span', {}, story)]));
    }
    setText(item.when, this.when(event, state, now));
    if (chosen) this.tell(item, alarm, later);
  }

  /** @type {(event: AlarmEvent, state: AlarmState, now: number) => string} */
  when(event, state, now) {
    if (this.app.search.on) return clock(event.t_raised);
    return state === 'cleared' ? `cleared ${span(Math.max(0, now - event.t))} ago` : span(Math.max(0, now - event.t_raised));
  }

  /**
   * The whole story of the chosen one, at the moment that is shown.
   * @type {(item: Item, alarm: Alarm, later: boolean) => void}
   */
  tell(item, alarm, later) {
    const here = this.app.rows().find(({ alarm: { id } }) => id === alarm.id);
    const [told, hidden] = here ? [here.alarm, here.later] : [alarm, later];
    const of = `${told.event.t}|${told.event.state}|${told.ack?.t}|${told.shelved}|${hidden}`;
    if (item.of === of) return;
    item.of = of;
    item.about.querySelector('.acts > :last-child')?.replaceWith(shelf(told, this.app));
    const go = (/** @type {number} */ t) => this.app.timeline.show(t, { push: true });
    const unfolded = item.told.querySelector('details.rest')?.hasAttribute('open');
    item.told.replaceChildren(...about(told, hidden, go, (id) => this.app.nameOf(id)));
    if (unfolded) item.told.querySelector('details.rest')?.setAttribute('open', '');
  }
}
