// Buttons, tabs and the search box: what each of them does.

import { SEVERITIES } from './alarms.js';
import { by, el } from './dom.js';
import { gestures, zoomBy } from './gestures.js';

/** @type {Pane[]} */
export const PANES = ['alarms', 'fleet', 'vehicle', 'network'];
const FOUND = 30;

/**
 * Give every control of the page its work.
 * @type {(app: App) => void}
 */
export function controls(app) {
  const { map } = app;
  gestures(by('air'), map, app.area, {
    onPick: (x, y) => app.select(map.pick(x, y) || null, { open: true }),
    onTake: () => app.follow(false),
  });
  by('zoom-in').onclick = () => zoomBy(map, 1);
  by('zoom-out').onclick = () => zoomBy(map, -1);
  by('fit').onclick = () => { app.follow(false); map.fit(); };
  by('follow').onclick = () => app.follow(!app.following);
  for (const button of worldButtons()) button.onclick = () => app.showWorld(worldOf(button));
  tabs(app);
  search(app);
}

/** The buttons that switch between the Earth and a local frame. */
export const worldButtons = () => by('worlds').querySelectorAll('button');
/** @type {(button: HTMLButtonElement) => World} */
export const worldOf = (button) => (button.dataset.world === 'local' ? 'local' : 'earth');

/**
 * Mark the button of each map with the worst alarm about a vehicle on it, for the other map is out of sight.
 * @type {(app: App) => void}
 */
export function markWorlds({ fleet, marks }) {
  const worst = { earth: -1, local: -1 };
  for (const [id, { rank }] of marks) {
    const row = fleet.rowOfId(id);
    if (row < 0) continue;
    const world = fleet.world[row] ? 'local' : 'earth';
    worst[world] = Math.max(worst[world], rank);
  }
  for (const button of worldButtons()) {
    const severity = SEVERITIES[worst[worldOf(button)]] ?? '';
    button.dataset.severity = severity;
    button.title = severity ? `The worst alarm there: ${severity}` : 'No alarm there';
  }
}

/** @type {(app: App) => void} */
function tabs(app) {
  for (const pane of PANES) by(`tab-${pane}`).onclick = () => app.showPane(pane);
  by('tabs').addEventListener('keydown', (event) => {
    const step = event.key === 'ArrowRight' ? 1 : event.key === 'ArrowLeft' ? -1 : 0;
    if (!step) return;
    const at = PANES.findIndex((pane) => by(`tab-${pane}`).getAttribute('aria-selected') === 'true');
    const next = PANES[(at + step + PANES.length) % PANES.length];
    app.showPane(next);
    by(`tab-${next}`).focus();
  });
}

/** @type {(app: App) => void} */
function search(app) {
  const box = by('find');
  box.oninput = () => {
    const found = find(app.fleet, box.value);
    by('found').replaceChildren(...found.map(({ id, callsign }) => el('option', { value: id }, callsign)));
    if (app.fleet.slots.has(box.value)) app.select(box.value, { go: true, open: true });
  };
  box.onkeydown = (event) => {
    if (event.key !== 'Enter') return;
    const [first] = find(app.fleet, box.value);
    if (first) app.select(first.id, { go: true, open: true });
  };
}

/**
 * Vehicles whose id or callsign holds this word.
 * @type {(fleet: Fleet, word: string) => { id: string, callsign: string }[]}
 */
function find(fleet, word) {
  const wanted = word.trim().toLowerCase();
  if (!wanted) return [];
  const found = [];
  for (const { id, callsign } of fleet.ids.values()) {
    if (id.toLowerCase().includes(wanted) || callsign.toLowerCase().includes(wanted)) found.push({ id, callsign });
    if (found.length === FOUND) break;
  }
  return found;
}
