// The story of one alarm: the steps of its life, each a way to that moment, its diagnosis, and its evidence with units.

import { clues, faultAt, likely, others } from './clues.js';
import { el, facts } from './dom.js';
import { kindOf } from './kinds.js';
import { clock, label, short, span } from './units.js';
import { waysOut } from './ways.js';

// Units of evidence that say how far something is from normal, and how probable it is.
const [DISTANCE, PROBABILITY] = ['sigma', 'of 1'];

/**
 * What there is to say of an alarm without its sentence.
 * @type {(event: AlarmEvent, state: AlarmState) => string}
 */
export function summary({ evidence, diagnosis, ended, t, t_onset, t_raised }, state) {
  const cause = diagnosis ? faultAt(diagnosis) : (evidence.causes ?? []).join(', ').replaceAll('_', ' ');
  if (state !== 'cleared') return cause || `since ${clock(t_onset)}`;
  return `lasted ${span(t - t_raised)}${cause ? `|${cause}` : ''}${ended ? `|${ended.replaceAll('_', ' ')}` : ''}`;
}

/**
 * Life, diagnosis, ways out and evidence. `later`: the evidence of the moment that is shown is not known; `go(t)` shows a
 * moment; `nameOf(id)` is a vehicle for a person.
 * @type {(alarm: Alarm, later: boolean, go: (t: number) => void, nameOf: (id: string) => string) => HTMLElement[]}
 */
export function about({ event, ack }, later, go, nameOf) {
  /** @type {HTMLElement[]} */
  const parts = [steps(event, ack, go)];
  if (later) return [...parts, el('p.tag', {}, 'The evidence of this moment is not kept: the daemon has no history.')];
  if (event.diagnosis) parts.push(diagnosisCard(event.diagnosis));
  parts.push(...waysOut(event, nameOf));
  const evidence = evidenceOf(event);
  if (evidence.length) parts.push(el('h3.of', {}, 'Evidence', el('span', {}, `at ${clock(event.t)}`)), ...evidence);
  return parts;
}

/** @type {(event: AlarmEvent, ack: Acknowledgement | null, go: (t: number) => void) => HTMLElement} */
function steps({ kind, t_onset, t_raised, t_cleared, worst, ended }, ack, go) {
  /** @type {[word: string, t: number, moment: boolean][]} */
  const life = [['onset', t_onset, true], ['raised', t_raised, true]];
  // an incident is no measurement: no moment of it is worse than another
  if (worst && kind !== 'incident') life.push(['worst', worst.t, true]);
  if (t_cleared !== null) life.push([ended ? `cleared (${ended.replaceAll('_', ' ')})` : 'cleared', t_cleared, true]);
  if (ack) life.push([`acknowledged${ack.by ? ` by ${ack.by}` : ''}`, ack.t, false]);
  return el('ol.life', {}, ...life.map(([word, t, moment]) => {
    if (!moment) return el('li', {}, `${word} ${clock(t)}`);
    const button = el('button', { type: 'button', title: 'Show this moment' }, `${word} ${clock(t)}`);
    button.onclick = () => go(t);
    return el('li', {}, button);
  }));
}

/**
 * Numbers with unit and meaning, those that contribute most first, then words. What is within its threshold, or said by the
 * diagnosis, is folded away. The exact number is in the title of its cell.
 * @type {(event: AlarmEvent) => HTMLElement[]}
 */
function evidenceOf(event) {
  const fields = kindOf(event.kind)?.evidence ?? [];
  /** @type {[weight: number, tells: boolean, fact: Fact][]} */
  const numbers = [];
  /** @type {Fact[]} */
  const words = [];
  for (const [name, value] of Object.entries(event.evidence)) {
    const [what, unit] = label(name);
    const said = fields.find((field) => field.name === name);
    const meaning = said ? `${said.meaning} (${name})` : name;
    const measure = said?.unit || unit;
    const written = measure === '0/1' ? (value ? 'yes' : 'no') : measure === PROBABILITY ? likely(Number(value)) : `${short(Number(value))}${measure ? ` ${measure}` : ''}`;
    if (typeof value === 'number' && name.endsWith('_t')) words.push([name.slice(0, -2).replaceAll('_', ' '), clock(value), meaning]);
    else if (typeof value === 'number') {
      const weight = measure === DISTANCE ? value / event.threshold : 0;
      const named = measure === PROBABILITY ? name.replace(/_p$/, '').replaceAll('_', ' ') : what;
      numbers.push([weight, weight >= 1 || (measure !== DISTANCE && measure !== PROBABILITY), [named, written, meaning, String(value)]]);
    }
    else if (typeof value === 'string' && name !== 'extent') words.push([name.replaceAll('_', ' '), value, meaning]);
    else if (name === 'causes' && event.evidence.causes?.length) words.push(['causes', event.evidence.causes.join(', ').replaceAll('_', ' '), meaning]);
  }
  // an incident is no measurement: it has no threshold of its own
  /** @type {Fact[]} */
  const judged = event.kind === 'incident' ? [] : [['score', short(event.score), 'how strong the evidence is', String(event.score)], ['threshold', short(event.threshold), 'an alarm is due at this score', String(event.threshold)]];
  numbers.sort((a, b) => b[0] - a[0]);
  /** @type {(those: boolean) => Fact[]} */
  const that = (those) => numbers.filter(([, tells]) => tells === those).map(([, , fact]) => fact);
  const [first, rest] = [[...judged, ...that(true)], that(false)];
  const parts = [];
  if (first.length) parts.push(facts(first));
  if (words.length) {
    const list = facts(words);
    list.classList.add('wide');
    parts.push(list);
  }
  if (rest.length) parts.push(el('details.rest', {}, el('summary', {}, `${rest.length} more figures, none of them over its threshold`), facts(rest)));
  return parts;
}

/**
 * What is wrong and where, how sure that is, and what else it may be.
 * @type {(diagnosis: Diagnosis) => HTMLElement}
 */
export function diagnosisCard({ type, location, confidence, evidence = [], alternatives = [] }) {
  const bar = el('i');
  bar.style.width = `${Math.round(100 * confidence)}%`;
  const said = clues(evidence).map((line) => el('li', {}, line));
  const rivals = others(alternatives);
  return el('div.diagnosis', {},
    el('h3', {}, faultAt({ type, location }), el('span', {}, likely(confidence))),
    el('div.sure', {}, bar),
    said.length ? el('ul', {}, ...said) : null,
    rivals.length ? el('p.tag', {}, `or: ${rivals.join('; ')}`) : null);
}
