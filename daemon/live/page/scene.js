// What belongs to the map besides the vehicles of a picture, at the moment that is shown.

import { known } from './units.js';

/**
 * The pictures that trails are made of, newest first.
 * @type {(app: App) => Trail}
 */
export function trailOf({ history, past, timeline }) {
  const { paused } = timeline;
  if (paused !== null && !timeline.inTab(paused)) return { times: past.pictures.map(({ t }) => t ?? NaN), picture: (i) => past.pictures[i] };
  const last = !history.entries.length ? -1 : paused === null ? history.entries.length - 1 : history.find(paused);
  return { times: history.entries.slice(0, last + 1).map(({ t }) => t).reverse(), picture: (i) => history.peek(last - i) };
}

/**
 * Areas of interference that are active.
 * @type {(rows: AlarmRow[]) => Area[]}
 */
export function areasOf(rows) {
  return rows.filter(({ alarm, state }) => alarm.event.kind === 'gnss_interference' && state !== 'cleared')
    .flatMap(({ alarm: { event: { evidence: { lat, lon, radius_km } } } }) => (known(lat) && known(lon) && known(radius_km) ? [{ lat, lon, radius_km }] : []));
}

/**
 * The rank of the active alarm about each pair, by both ids in order.
 * @type {(rows: AlarmRow[]) => Map<string, number>}
 */
export function pairRanks(rows) {
  /** @type {Map<string, number>} */
  const found = new Map();
  for (const { alarm, state, rank } of rows) {
    const { kind, subjects } = alarm.event;
    if (state === 'cleared' || (kind !== 'conflict' && kind !== 'los')) continue;
    const key = [...subjects].sort().join('~');
    found.set(key, Math.max(rank, found.get(key) ?? -1));
  }
  return found;
}
