// Puts the page together: one moment, shown by the map, the timeline, the slider and in words.

import { showConfusion, showMetrics } from './confusion.js';
import { by, draw, el } from './dom.js';
import { EpisodeMap } from './map.js';
import { Player } from './player.js';
import { Timeline } from './timeline.js';
import { aboutMoment, clockWords, countWords, passesAt } from './words.js';

const MANY = 10;

/** @type {EpisodeData} */
const data = JSON.parse(by('episode', HTMLScriptElement).text);
const player = new Player(data);
const map = new EpisodeMap(data, (t) => player.show(t));
const timeline = new Timeline(data, player, jump);
const slider = by('slider', HTMLInputElement);
const play = by('play', HTMLButtonElement);
const speed = by('speed', HTMLSelectElement);
const everything = [...data.conflicts, ...data.alerts];

/** @type {(step: number) => EpisodeWindow[]} */
const windowsAt = (step) => everything.filter((w) => w.start <= step && step < w.end);

/**
 * The beginning of a window; a map that is zoomed in moves to its aircraft.
 * @param {EpisodeWindow} w
 */
function jump(w) {
  player.goTo(w.start);
  if (map.view.zoomed) map.focus(w.who, w.start);
}

/** Zoom to the pair that will pass nearest, or else to the aircraft of a window. */
function focusNearest() {
  const [pass] = passesAt(data, player.step);
  const who = pass ? [pass[1], pass[2]] : windowsAt(player.step).find((w) => w.who.length)?.who;
  if (who) map.focus(who, player.step);
}

function show() {
  const { step, t, part, playing } = player;
  const windows = windowsAt(step);
  map.drawMoment(step, part, windows);
  timeline.drawMoment(player.smooth ? t : data.t_s[step] ?? 0, windows);
  slider.value = String(step);
  slider.setAttribute('aria-valuetext', `${clockWords(data.t_s[step] ?? 0)}, step ${step + 1} of ${data.t_s.length}`);
  by('clock', HTMLOutputElement).value = `${clockWords(data.t_s[step] ?? 0)}, step ${step + 1} of ${data.t_s.length}`;
  play.textContent = playing ? 'Pause' : 'Play';
  by('moment', HTMLUListElement).replaceChildren(...aboutMoment(data, step, windows).map(([tone, text]) => el('li', { 'data-tone': tone }, text)));
}

/** The first window that begins after this step, or the last before it. */
function otherWindow(/** @type {1 | -1} */ way) {
  const sorted = [...everything].sort((a, b) => way * (a.start - b.start));
  const found = sorted.find((w) => way * (w.start - player.step) > 0);
  if (found) jump(found);
}

/** @type {Record<string, (event: KeyboardEvent) => void>} */
const KEYS = {
  ' ': () => player.toggle(),
  ArrowLeft: ({ shiftKey }) => player.goTo(player.step - (shiftKey ? MANY : 1)),
  ArrowRight: ({ shiftKey }) => player.goTo(player.step + (shiftKey ? MANY : 1)),
  Home: () => player.goTo(0),
  End: () => player.goTo(player.last),
  n: () => otherWindow(1),
  p: () => otherWindow(-1),
  '+': () => map.zoom(1.6),
  '-': () => map.zoom(1 / 1.6),
  z: focusNearest,
  f: () => map.fit(),
};

document.addEventListener('keydown', (event) => {
  const act = KEYS[event.key];
  const target = event.target instanceof Element ? event.target : document.body;
  if (!act || event.ctrlKey || event.metaKey || event.altKey || target.matches('select')) return;
  // a focused button keeps the space bar, and a focused area that scrolls its own keys
  if (event.key === ' ' && target.matches('button, summary') || target.matches('.scroll')) return;
  event.preventDefault();
  act(event);
});
slider.max = String(player.last);
slider.oninput = () => player.goTo(Number(slider.value));
play.onclick = () => player.toggle();
by('near', HTMLButtonElement).onclick = focusNearest;
by('back', HTMLButtonElement).onclick = () => player.goTo(player.step - 1);
by('on', HTMLButtonElement).onclick = () => player.goTo(player.step + 1);
speed.replaceChildren(...player.speeds.map((times) => el('option', { value: String(times) }, `${times} ×`)));
speed.value = String(player.speed);
speed.onchange = () => { player.speed = Number(speed.value); };
map.moved = show;
player.onChange(show);

by('name', HTMLElement).textContent = data.name;
const { los_threshold_nm: minimum, horizon_s: horizon } = data.settings;
by('summary', HTMLElement).textContent = `${countWords(data.ids.length, 'aircraft', 'aircraft')}, ${countWords(data.t_s.length, 'step')} of ${data.step_s} s.`
  + ` A conflict: two closer than ${minimum} NM within ${horizon} s if nobody changes course. An alert: deliberate commands against a threat.`;
by('legend', HTMLElement).replaceChildren(...[
  [draw('circle', { class: 'zone', cx: 12, cy: 9, r: 8, 'data-tone': 'quiet' }), `Half of the minimum of ${minimum} NM around each: where two circles overlap, separation is lost and they are red.`],
  [draw('path', { class: 'pass conflict', 'data-tone': 'matched', d: 'M0 9h24' }), 'A conflict that an alert answers: the way of each to its closest point, and the distance there.'],
  [draw('path', { class: 'pass conflict', 'data-tone': 'missed', d: 'M0 9h24' }), 'A conflict that is missed.'],
  [draw('path', { class: 'pass', d: 'M0 9h24' }), `A threat: a pass at up to ${data.settings.threat_nm} NM that is no conflict.`],
  [draw('circle', { class: 'commanded', cx: 12, cy: 9, r: 7 }), 'A deliberate command, with the change of heading and speed.'],
  [draw('path', { class: 'waypoint', d: 'M8 5h8v8h-8Z' }), 'A waypoint; filled once it is reached.'],
  [draw('path', { class: 'mistake', 'data-tone': 'missed', d: 'M6 9L12 3L18 9L12 15Z' }), 'Where a conflict was missed.'],
  [draw('path', { class: 'mistake', 'data-tone': 'ghost', d: 'M12 2.5L18.5 14H5.5Z' }), 'Where an alert had no conflict.'],
].flatMap(([mark, words]) => [el('dt', {}, draw('svg', { width: 24, height: 18, 'aria-hidden': 'true' }, mark)), el('dd', {}, words)]));
by('key', HTMLElement).replaceChildren(...[
  [draw('path', { class: 'separation', d: 'M0 6h22' }), 'least separation'],
  [draw('path', { class: 'dcpa', d: 'M0 6h22' }), `least predicted within ${horizon} s`],
  [draw('path', { class: 'minimum', d: 'M0 6h22' }), `minimum ${minimum} NM`],
  [draw('circle', { class: 'lost', cx: 11, cy: 6, r: 3 }), 'separation lost'],
  [draw('path', { class: 'match', d: 'M0 6h22' }), 'joins a conflict and the alert that answers it'],
  [draw('path', { class: 'tick', d: 'M11 2v8' }), 'step with a conflict or a deliberate command; bars have margins'],
].map(([mark, words]) => el('li', {}, draw('svg', { width: 22, height: 12, 'aria-hidden': 'true' }, mark), words)));
showConfusion(data, jump, (w) => timeline.light(w));
showMetrics(data);
show();
