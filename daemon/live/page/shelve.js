// Put an alarm, what is like it, or where it is on a shelf for a while, and take it down again.

import { tell, whyNot } from './api.js';
import { announce, el } from './dom.js';
import { EARTH, latOf, lonOf } from './fleet.js';
import { known, NM_M } from './units.js';

// Around a vehicle, unless somebody says otherwise.
const AROUND_M = 10 * NM_M;
/** @type {[value: string, words: string][]} what to shelve, and for how many minutes */
const CHOICES = [['alarm:30', 'this alarm for 30 min'], ['subjects:60', 'this kind about them for 1 h'], ['subjects:480', 'this kind about them for 8 h'],
  ['vehicle:60', 'all about the vehicle for 1 h'], ['kind:60', 'all of this kind for 1 h']];

/**
 * A list to choose from, or the button that takes the alarm down.
 * @type {(alarm: Alarm, app: App) => HTMLElement}
 */
export function shelf({ id, shelved, event }, app) {
  const done = () => app.past.again();
  /** @type {(asked: Promise<unknown>, words: string) => Promise<void>} */
  const after = (asked, words) => asked.then(() => announce(words), (error) => announce(whyNot(error))).then(done);
  if (shelved) {
    const button = el('button.small.take-down', { type: 'button' }, 'Take off the shelf');
    button.onclick = () => after(tell(`/shelves/${encodeURIComponent(shelved)}`, {}, 'DELETE'), 'taken off the shelf');
    return button;
  }
  const list = el('select.small', { 'aria-label': 'Shelve: quiet for a while' }, el('option', { value: '' }, 'Shelve …'), ...CHOICES.map(([value, words]) => el('option', { value }, words)), el('option', { value: 'area' }, 'this area …'));
  list.onchange = () => {
    if (list.value === 'area') {
      list.value = '';
      app.area.ask(areaOf(event, app), event.kind);
      return;
    }
    const [what, minutes] = list.value.split(':');
    if (minutes) void after(tell(`/alarms/${encodeURIComponent(id)}/shelve`, { what, minutes: Number(minutes) }), 'shelved');
  };
  return list;
}

/**
 * Where an alarm is: the area that it is about, else around its vehicle, else the middle of the map.
 * @type {(event: AlarmEvent, app: App) => Circle}
 */
function areaOf({ evidence: { lat, lon, radius_km }, subjects }, { area, fleet }) {
  if (known(lat) && known(lon) && known(radius_km)) return { lat, lon, radius_m: 1000 * radius_km };
  const row = subjects.map((id) => fleet.rowOfId(id)).find((each) => each >= 0 && fleet.worldOf(each) === EARTH) ?? -1;
  if (row < 0) return area.middle();
  return { lat: latOf(fleet.wy[row]), lon: lonOf(fleet.wx[row]), radius_m: AROUND_M };
}
