// The alarm list: who, what, how bad, since when; filters, acknowledge, and the whole story of the chosen one.

import { SEVERITIES } from './alarms.js';
import { by, el, facts, setText, shape } from './dom.js';
import { clock, label, short, span } from './units.js';

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
      this.render();
    };
  }

  /** @type {(chip: HTMLElement, on: boolean) => void} */
  press(chip, on) {
    chip.setAttribute('aria-pressed', String(on));
    this.render();
  }

  /**
   * The rows that pass the filters, in order.
   * @type {() => AlarmRow[]}
   */
  shown() {
    const { severities, kind, open, cleared } = this.filter;
    return this.app.alarms.list(this.app.shownTime()).filter((row) => severities.has(row.severity)
      && (!kind || row.alarm.event.kind === kind) && (!open || !row.alarm.ack) && (cleared || row.state !== 'cleared'));
  }

  render() {
    const rows = this.shown();
    const now = this.app.now();
    for (const { alarm } of rows) this.addKind(alarm.event.kind);
    /** @type {Set<string>} */
    const seen = new Set();
    /** @type {HTMLElement | null} */
    let before = null;
    for (const row of rows.slice(0, MOST)) {
      const item = this.rows.get(row.alarm.id) ?? this.make(row.alarm.id);
      this.update(item, row, now);
      seen.add(row.alarm.id);
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
    const more = by('alarms-more');
    more.hidden = rows.length > 0 && rows.length <= MOST;
    setText(more, rows.length ? `and ${rows.length - MOST} more` : 'No alarms to show.');
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
    const [ack, accept] = [el('button.ack', { type: 'button' }), el('button.accept', { type: 'button', hidden: true }, ACCEPT)];
    const [top, about] = [el('span.top', {}, kind, who), el('div.about', { hidden: true })];
    const open = el('button.open', { type: 'button' }, top, sub);
    const li = el('li.alarm', {}, open, el('div.side', {}, when, ack, accept), about);
    li.dataset.id = id;
    /** @type {Item} */
    const item = { li, open, top, kind, who, sub, when, ack, accept, about, shape: null, version: '', story: '', told: '' };
    item.open.onclick = () => this.app.choose(this.app.chosen === id ? null : id);
    item.ack.onclick = () => this.app.acknowledge(id);
    item.accept.onclick = () => this.accept(item, id);
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
    void this.app.accept(id);
  }

  /** @type {(item: Item, row: AlarmRow, now: number) => void} */
  update(item, { alarm, state, severity }, now) {
    const { event, ack } = alarm;
    const chosen = this.app.chosen === alarm.id;
    const who = event.subjects.map((id) => this.app.nameOf(id)).join(' × ');
    const version = `${severity}|${state}|${ack?.t}|${chosen}`;
    if (item.version !== version) {
      item.version = version;
      item.li.dataset.severity = severity;
      item.li.className = `alarm${state === 'cleared' ? ' cleared' : ''}${ack ? ' acked' : ''}${chosen ? ' chosen' : ''}`;
      item.shape?.remove();
      item.shape = shape(severity);
      item.top.prepend(item.shape);
      item.open.setAttribute('aria-expanded', String(chosen));
      setText(item.ack, ack ? 'acknowledged' : 'Acknowledge');
      item.ack.setAttribute('aria-pressed', String(Boolean(ack)));
      item.ack.title = ack ? `${ack.by || 'someone'}, ${clock(ack.t)}; press to take back` : '';
      item.about.hidden = !chosen;
    }
    // of the moment before now that the slider shows nothing can be accepted
    item.accept.hidden = this.app.shownTime() !== undefined || !this.app.alarms.acceptable(event);
    setText(item.who, who);
    setText(item.kind, event.kind.replaceAll('_', ' '));
    item.accept.setAttribute('aria-label', `Accept the position as true and end the alarm: ${who}`);
    item.ack.setAttribute('aria-label', `${ack ? 'Acknowledged' : 'Acknowledge'}: ${event.kind} ${who}`);
    item.open.setAttribute('aria-label', `${severity} ${event.kind} ${who}, ${state}`);
    const story = state === 'cleared' ? summary(event) : alarm.say;
    if (item.story !== story) {
      item.story = story;
      item.sub.replaceChildren(...(state === 'cleared' ? story.split('|').map((part, i) => el(i ? 'span' : 'b', {}, part)) : [el('span', {}, story)]));
    }
    const since = state === 'cleared' ? `cleared ${span(Math.max(0, now - event.t))} ago` : span(Math.max(0, now - event.t_raised));
    setText(item.when, since);
    if (chosen && item.told !== `${event.t}${version}`) {
      item.told = `${event.t}${version}`;
      item.about.replaceChildren(...about(alarm));
    }
  }
}

/**
 * What is left to say of an alarm that is over.
 * @type {(event: AlarmEvent) => string}
 */
function summary({ evidence, diagnosis, ended, t, t_raised }) {
  const cause = diagnosis ? `${diagnosis.type.replaceAll('_', ' ')} at ${diagnosis.location}` : (evidence.causes ?? []).join(', ').replaceAll('_', ' ');
  return `lasted ${span(t - t_raised)}${cause ? `|${cause}` : ''}${ended ? `|${ended.replaceAll('_', ' ')}` : ''}`;
}

/**
 * Evidence, diagnosis and life cycle of one alarm.
 * @type {(alarm: Alarm) => HTMLElement[]}
 */
function about({ event, life, ack }) {
  /** @type {[name: string, value: string][]} */
  const numbers = [];
  /** @type {[name: string, value: string][]} */
  const words = [];
  for (const [name, value] of Object.entries(event.evidence)) {
    const [what, unit] = label(name);
    if (typeof value === 'number') numbers.push([what, `${short(value)}${unit ? ` ${unit}` : ''}`]);
    else if (typeof value === 'string' && name !== 'extent') words.push([name.replaceAll('_', ' '), value]);
  }
  /** @type {[word: string, t: number][]} */
  const steps = [['onset', event.t_onset], ...life.filter(([, state], i) => state !== 'updated' || i === life.length - 1)
    .map(([t, state]) => /** @type {[string, number]} */ ([state, t]))];
  if (ack) steps.push([`acknowledged${ack.by ? ` by ${ack.by}` : ''}`, ack.t]);
  /** @type {HTMLElement[]} */
  const parts = [el('ol.life', {}, ...steps.map(([word, t]) => el('li', {}, `${word} ${clock(t)}`)))];
  if (event.diagnosis) parts.push(diagnosisCard(event.diagnosis));
  parts.push(facts([['score', short(event.score)], ['threshold', short(event.threshold)], ...numbers.slice(0, 24)]));
  if (words.length) parts.push(facts(words));
  return parts;
}

/**
 * Alarms by what they say, and what the tools found: a line each.
 * @type {(evidence: Clue[]) => string[]}
 */
function gathered(evidence) {
  /** @type {Map<string, string[]>} */
  const alarms = new Map();
  const lines = [];
  for (const clue of evidence) {
    if ('tool' in clue) lines.push(`${clue.tool.replaceAll('_', ' ')} ${clue.target}: ${clue.found.replaceAll('_', ' ')}`);
    else if ('declared' in clue) lines.push(`declared: ${clue.declared}; found: ${clue.found}`);
    else alarms.set(clue.alarm, [...(alarms.get(clue.alarm) ?? []), clue.stream]);
  }
  return [...[...alarms].map(([word, streams]) => `${word}: ${streams.slice(0, 8).join(', ')}${streams.length > 8 ? ` and ${streams.length - 8} more` : ''}`), ...lines];
}

/**
 * What is wrong and where, how sure that is, and what else it may be.
 * @type {(diagnosis: Diagnosis) => HTMLElement}
 */
export function diagnosisCard({ type, location, confidence, evidence = [], alternatives = [] }) {
  const bar = el('i');
  bar.style.width = `${Math.round(100 * confidence)}%`;
  const said = gathered(evidence).map((line) => el('li', {}, line));
  const others = alternatives.slice(0, 3).map((a) => `${a.type.replaceAll('_', ' ')} at ${a.location} ${Math.round(100 * a.confidence)} %`);
  return el('div.diagnosis', {},
    el('h3', {}, `${type.replaceAll('_', ' ')} at ${location}`, el('span', {}, `${Math.round(100 * confidence)} %`)),
    el('div.sure', {}, bar),
    said.length ? el('ul', {}, ...said) : null,
    others.length ? el('p.tag', {}, `or: ${others.join('; ')}`) : null);
}
