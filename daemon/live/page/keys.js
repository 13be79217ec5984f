// The keyboard, and the page of help that lists it.

import { acknowledge, copyLink, walk } from './doing.js';
import { by, el } from './dom.js';
import { zoomBy } from './gestures.js';
import { toggleTheme } from './palette.js';

/**
 * Keys in the order in which they are listed: [keys, words, what happens].
 * @type {(app: App) => void}
 */
export function keyboard(app) {
  const { map, timeline } = app;
  /** @type {[keys: string[], words: string, act: () => void][]} */
  const table = [
    [['j'], 'next alarm', () => walk(app, 1)],
    [['k'], 'alarm before', () => walk(app, -1)],
    [['a'], 'acknowledge the alarm', () => app.chosen && acknowledge(app, app.chosen)],
    [['/'], 'find a vehicle', () => by('find').focus()],
    [['s'], 'search alarms', () => { app.showPane('alarms'); by('q').focus(); }],
    [['g'], 'go to the alarm’s moment', () => app.chosen && app.choose(app.chosen, { jump: true })],
    [['y'], 'copy a link to this', () => copyLink(app, app.chosen, by('link-copy'))],
    [['f'], 'fit the fleet', () => { app.follow(false); map.fit(); }],
    [['c'], 'follow the vehicle', () => app.follow(!app.following)],
    [['l'], 'Earth or local frame', () => app.otherWorld()],
    [['x'], 'shelve an area', () => app.area.ask(app.area.middle(), '')],
    [['+', '='], 'zoom in', () => zoomBy(map, 1)],
    [['-'], 'zoom out', () => zoomBy(map, -1)],
    [[' '], 'pause, go on', () => timeline.toggle()],
    [[',', '<'], 'five seconds back', () => timeline.stepBack()],
    [['.', '>'], 'five seconds on', () => timeline.stepOn()],
    [['[', 'PageUp'], 'a minute back', () => timeline.step(-60)],
    [[']', 'PageDown'], 'a minute on', () => timeline.step(60)],
    [['End'], 'back to now', () => timeline.live()],
    [['Home'], 'to the beginning', () => timeline.show(timeline.extent()[0])],
    [['1'], 'alarms', () => app.showPane('alarms')],
    [['2'], 'fleet', () => app.showPane('fleet')],
    [['3'], 'vehicle', () => app.showPane('vehicle')],
    [['4'], 'network', () => app.showPane('network')],
    [['w'], 'watch list: the vehicle on or off', () => app.toggleWatch()],
    [['t'], 'dark or light', toggleTheme],
    [['Escape'], 'choose nothing', () => (app.area.on ? app.area.draw(false) : app.choose(null) || app.select(null))],
    [['?'], 'this help', () => help(true)],
  ];
  /** @type {Map<string, () => void>} */
  const what = new Map();
  for (const [keys, , act] of table) for (const key of keys) what.set(key, act);
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return;
    const target = /** @type {HTMLElement} */ (event.target);
    const typing = target.matches('input:not([type=range]), select, textarea');
    if (typing && event.key !== 'Escape') return;
    if (typing) target.blur();
    // a focused button keeps the space bar, a focused slider its own keys
    if (event.key === ' ' && target.matches('button, summary, a')) return;
    if (['End', 'Home', 'PageUp', 'PageDown'].includes(event.key) && target.matches('input, .pane, .pane *')) return;
    const act = what.get(event.key);
    if (!act) return;
    act();
    event.preventDefault();
  });
  /** @type {Record<string, string>} */
  const names = { ' ': 'space', Escape: 'Esc' };
  by('keys').replaceChildren(...table.map(([keys, words]) => el('div', {}, el('dt', {}, words),
    el('dd', {}, el('kbd', {}, names[keys[0]] ?? keys[0])))), el('div', {}, el('dt', {}, 'pan the map'), el('dd', {}, el('kbd', {}, '← ↑ → ↓'))));
  by('help-open').onclick = () => help(true);
  by('help-close').onclick = () => help(false);
  by('theme').onclick = toggleTheme;
  by('link-copy').onclick = () => copyLink(app, app.chosen, by('link-copy'), matchMedia('(pointer: coarse)').matches);
}

/** @type {(on: boolean) => void} */
function help(on) {
  if (on) by('help').showModal(); else by('help').close();
}
