// Which conflicts were seen, missed and imagined, in words and by window; and every metric.

import { by, el } from './dom.js';
import { NONE, clockWords, countWords } from './words.js';

/** @type {(data: EpisodeData, name: string) => HTMLElement} */
function figure(data, name) {
  const value = data.metrics[name];
  return el('data', { value: value === null ? '' : String(value), 'data-metric': name }, data.metric_words[name] ?? NONE);
}

/**
 * The table of four, with a button for each window.
 * @type {(data: EpisodeData, jump: (w: EpisodeWindow) => void, light: (w: EpisodeWindow | null) => void) => void}
 */
export function showConfusion(data, jump, light) {
  const steps = data.t_s.length;
  /** @type {(metric: string, tone: string, about: string, windows: EpisodeWindow[]) => HTMLElement} */
  const cell = (metric, tone, about, windows) => {
    const buttons = windows.map((w) => {
      const button = el('button', { type: 'button', 'aria-label': `Go to ${w.kind} ${w.index + 1} at ${clockWords(w.start_s)}` }, clockWords(w.start_s));
      button.onclick = () => jump(w);
      button.onpointerenter = button.onfocus = () => light(w);
      button.onpointerleave = button.onblur = () => light(null);
      return button;
    });
    const list = buttons.length ? [el('span', { class: 'windows' }, ...buttons)] : [];
    return el('td', { 'data-tone': tone, 'data-cell': metric }, el('b', {}, figure(data, metric)), metric, el('span', { class: 'about' }, about), ...list);
  };
  const { conflicts, alerts } = data;
  by('confusion', HTMLTableElement).replaceChildren(
    el('thead', {}, el('tr', {}, el('td', { class: 'corner' }), el('th', { scope: 'col' }, 'alert'), el('th', { scope: 'col' }, 'no alert'))),
    el('tbody', {},
      el('tr', {}, el('th', { scope: 'row' }, 'conflict'),
        cell('tp', 'matched', 'seen: conflicts that an alert answers', conflicts.filter((w) => w.verdict === 'matched')),
        cell('fn', 'missed', 'missed: conflicts without an alert', conflicts.filter((w) => w.verdict === 'missed'))),
      el('tr', {}, el('th', { scope: 'row' }, 'no conflict'),
        cell('fp', 'ghost', 'ghosts: alerts without a conflict', alerts.filter((w) => w.verdict === 'ghost')),
        cell('tn', 'quiet', `quiet: of ${countWords(steps, 'step')} those with neither; steps, not windows`, []))));
  by('rates', HTMLElement).replaceChildren(
    'Precision ', figure(data, 'precision'), ': alerts that answer a conflict. Recall ', figure(data, 'recall'),
    ': conflicts that were answered. F1 ', figure(data, 'f1_score'), '. Lead time ', figure(data, 'avg_lead_time_s'), ' s on average.');
}

/** @type {(data: EpisodeData) => void} */
export function showMetrics(data) {
  by('metrics', HTMLTableElement).replaceChildren(el('tbody', {}, ...Object.keys(data.metrics).map(
    (name) => el('tr', {}, el('th', { scope: 'row' }, name), el('td', {}, figure(data, name))))));
}
