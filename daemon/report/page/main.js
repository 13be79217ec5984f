// The report: what its buttons and keys do.

import { pathOf, report } from './data.js';
import { by } from '../../live/page/dom.js';
import { onTheme, toggleTheme } from '../../live/page/palette.js';
import { Plots } from './plots.js';
import { sortTables } from './tables.js';
import { drawNow, moveTime, Overview, redraw, showAlarm, showAll, shown, showTime, zoomTime } from './time.js';
import { TrackMap } from './track.js';

const hasTime = document.getElementById('overview') !== null && document.getElementById('plots') !== null;
const plots = hasTime ? new Plots() : null;
const map = hasTime && document.getElementById('map') ? new TrackMap(choose) : null;

/** @type {(vehicle: Vehicle) => void} */
function choose(vehicle) {
  if (vehicle.plots) plots?.choose(vehicle);
  map?.select(vehicle);
  for (const button of document.querySelectorAll('button.choose')) {
    button.setAttribute('aria-pressed', String(Number(/** @type {HTMLElement} */ (button).dataset.vehicle) === vehicle.row));
  }
}

/**
 * The time in which a vehicle was heard.
 * @type {(track: Track) => void}
 */
function showTrack(track) {
  const { t } = pathOf(track);
  const [first, last] = [t[0], t[t.length - 1]];
  showTime(first - 0.02 * (last - first) - 1, last + 0.02 * (last - first) + 1);
}

/**
 * Its span in all plots, its vehicle, its place on the map, and its card.
 * @type {(id: string, scroll: boolean) => void}
 */
function open(id, scroll) {
  const alarm = report.alarms.find((each) => each.id === id);
  if (!alarm || !plots) return;
  const vehicles = alarm.of.map((place) => report.vehicles[place]);
  const vehicle = vehicles.find((each) => each.plots) ?? vehicles[0];
  if (vehicle && !vehicles.includes(/** @type {Vehicle} */ (plots.vehicle))) choose(vehicle);
  showAlarm(id);
  map?.frame(vehicles, alarm.t0 - 20, alarm.t1 + 20);
  for (const card of document.querySelectorAll('.alarm')) card.classList.toggle('chosen', /** @type {HTMLElement} */ (card).dataset.id === id);
  if (scroll) document.getElementById(alarm.of.length > 1 && map ? 'map-section' : 'plots-section')?.scrollIntoView({ block: 'start' });
}

/** @type {(step: number) => void} */
function next(step) {
  const cards = [...document.querySelectorAll('.alarm')].map((card) => /** @type {HTMLElement} */ (card));
  if (!cards.length) return;
  const at = cards.findIndex((card) => card.dataset.id === shown.chosen);
  const card = cards[Math.min(Math.max(at + step, 0), cards.length - 1)];
  open(card.dataset.id ?? '', false);
  card.scrollIntoView({ block: 'nearest' });
}

/** @type {Record<string, () => void>} */
const KEYS = {
  t: toggleTheme, j: () => next(1), k: () => next(-1), f: () => map?.fit(), 0: showAll,
  '+': () => zoomTime(0.5), '=': () => zoomTime(0.5), '-': () => zoomTime(2), ArrowLeft: () => moveTime(-0.25), ArrowRight: () => moveTime(0.25),
};

document.addEventListener('keydown', (event) => {
  const act = KEYS[event.key];
  const target = /** @type {HTMLElement} */ (event.target);
  if (!act || event.ctrlKey || event.metaKey || event.altKey || target.matches('input, select, textarea, .scroll, pre')) return;
  if (!hasTime && event.key !== 't') return;
  event.preventDefault();
  act();
});
document.addEventListener('click', (event) => {
  const button = /** @type {HTMLElement} */ (event.target).closest('button');
  if (!button) return;
  if (button.dataset.alarm) open(button.dataset.alarm, true);
  if (button.dataset.vehicle) {
    const vehicle = report.vehicles.find(({ row }) => row === Number(button.dataset.vehicle));
    if (vehicle) choose(vehicle);
    if (vehicle?.track) showTrack(vehicle.track);
    document.getElementById('plots-section')?.scrollIntoView({ block: 'start' });
  }
});

by('theme').onclick = toggleTheme;
sortTables();
if (hasTime) {
  new Overview();
  /** @type {[string, () => void][]} */
  const buttons = [
    ['earlier', () => moveTime(-0.5)], ['later', () => moveTime(0.5)], ['zoom-in', () => zoomTime(0.5)], ['zoom-out', () => zoomTime(2)],
    ['zoom-all', showAll], ['map-in', () => map?.zoom(1.5)], ['map-out', () => map?.zoom(1 / 1.5)], ['map-fit', () => map?.fit()],
  ];
  for (const [id, act] of buttons) document.getElementById(id)?.addEventListener('click', act);
  onTheme(redraw);
  addEventListener('resize', redraw);
  const first = report.vehicles.find((vehicle) => vehicle.plots?.length) ?? report.vehicles[0];
  if (first) choose(first);
  showAll();
  if (location.hash.startsWith('#alarm-')) open(location.hash.slice(7), true);
  // paper is white
  /** @type {string | undefined} */
  let before;
  addEventListener('beforeprint', () => {
    before = document.documentElement.dataset.theme;
    if (before === 'dark') toggleTheme();
    drawNow();
  });
  addEventListener('afterprint', () => { if (before === 'dark') toggleTheme(); });
}
