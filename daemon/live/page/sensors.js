// What is behind one vehicle now: who watches it, its residual channels, its streams, and its link.

import { el, facts } from './dom.js';
import { label, short, span } from './units.js';

/** @type {Record<string, string>} */
const WORDS = { adsb: 'ADS-B', gps: 'GPS', imu: 'IMU', link: 'link', action: 'action', route: 'route' };

/**
 * Who watches it, and who does not and why: silence means that all is well only where somebody looks.
 * @type {(coverage: Coverage) => HTMLElement}
 */
export function watched({ watched: by_name, partly, not_watched }) {
  const by_whom = Object.keys(by_name).map((name) => name.replaceAll('_', ' ')).join(', ');
  const blind = not_watched.map(({ detector, say }) => el('li.over', {}, `not by ${detector.replaceAll('_', ' ')}: ${say}`));
  const halves = partly.map(({ detector, say }) => el('li', {}, `partly by ${detector.replaceAll('_', ' ')}: ${say}`));
  const nobody = partly.length ? 'in part only' : 'by nobody';
  return el('section.card', {}, el('h3', {}, 'Watched', el('span', {}, by_whom || nobody)),
    blind.length || halves.length ? el('ul.blind', {}, ...blind, ...halves) : null);
}

/**
 * The channels of gps_imu with their limit; null when it does not judge.
 * @type {(scores: Score[]) => HTMLElement | null}
 */
export function channels(scores) {
  const judged = scores.find(({ kind }) => kind === 'gps_imu');
  if (!judged?.numbers) return null;
  const limit = judged.threshold ?? NaN;
  const bars = Object.entries(judged.numbers).filter(([name]) => name.endsWith('_sigma'))
    .flatMap(([name, v]) => (v === null ? [] : [bar(label(name)[0], v, limit)]));
  return el('section.card', {}, el('h3', {}, 'GPS against IMU, by channel', el('span', {}, `limit ${short(limit)} σ`)), el('ul.bars', {}, ...bars));
}

/**
 * One stream with its rate and age; its newest values when it is opened.
 * @type {(stream: Stream, opened: Set<string>) => HTMLElement}
 */
export function stream({ kind, age_s, rate_hz, samples, values }, opened) {
  const usual = rate_hz ? 1 / rate_hz : 5;
  const health = age_s > Math.max(10 * usual, 10) ? 'silent' : age_s > Math.max(4 * usual, 4) ? 'late' : 'well';
  const summary = el('summary', {}, el('span.health', { role: 'img', 'aria-label': health, 'data-health': health }),
    el('span', {}, WORDS[kind] ?? kind), el('span.muted', {}, rate_hz ? `${short(rate_hz)} Hz` : `${samples} samples`),
    el('span.muted', {}, `${span(Math.max(0, age_s))} ago`));
  summary.dataset.stream = kind;
  const node = el('details', { open: opened.has(kind) }, summary,
    facts(values.map(([name, value, unit]) => [name.replaceAll('_', ' '), `${short(value)}${unit ? ` ${unit}` : ''}`])));
  node.ontoggle = () => (node.open ? opened.add(kind) : opened.delete(kind));
  return node;
}

/** @type {(link: Link) => HTMLElement} */
export function linkCard(link) {
  /** @type {Fact[]} */
  const rows = [['gateway', link.via || 'none'], ['latency over usual', milliseconds(link.latency_excess_s)],
    ['jitter', milliseconds(link.jitter_s)], ['reordered', short(link.reordered)]];
  for (const s of link.streams) {
    const rate = s.silent ? 'silent' : s.rate_ratio === null ? 'learning' : `${Math.round(100 * s.rate_ratio)} % of ${short(s.usual_hz)} Hz`;
    rows.push([WORDS[s.kind] ?? s.kind, rate]);
  }
  return el('section.card', {}, el('h3', {}, 'Link'), facts(rows));
}

/** @type {(s: number | null) => string} */
const milliseconds = (s) => `${short(s === null ? s : 1000 * s)} ms`;

/**
 * A value on a rail with a mark at its limit; all rails end at twice their limit, so that they can be compared.
 * @type {(name: string, value: number, limit: number) => HTMLElement}
 */
export function bar(name, value, limit) {
  const end = 2 * limit;
  const [fill, mark] = [el('i'), el('s')];
  fill.style.width = `${Math.max(0, Math.min(100, 100 * value / end))}%`;
  mark.style.left = `${100 * limit / end}%`;
  return el(value >= limit ? 'li.over' : 'li', {}, el('span.name', { title: name }, name), el('span.rail', {}, fill, mark), el('span.value', {}, short(value)));
}
