// Put an alarm, or what is like it, on a shelf for a while, and take it down again.

import { tell, whyNot } from './api.js';
import { announce, el } from './dom.js';

/** @type {[value: string, words: string][]} what to shelve, and for how many minutes */
const CHOICES = [['alarm:30', 'this alarm for 30 min'], ['subjects:60', 'this kind about them for 1 h'], ['subjects:480', 'this kind about them for 8 h'],
  ['vehicle:60', 'all about the vehicle for 1 h'], ['kind:60', 'all of this kind for 1 h']];

/**
 * A list to choose from, or the button that takes the alarm down.
 * @type {(alarm: Alarm, done: () => void) => HTMLElement}
 */
export function shelf({ id, shelved }, done) {
  /** @type {(asked: Promise<unknown>, words: string) => Promise<void>} */
  const after = (asked, words) => asked.then(() => announce(words), (error) => announce(whyNot(error))).then(done);
  if (shelved) {
    const button = el('button.small', { type: 'button' }, 'Take off the shelf');
    button.onclick = () => after(tell(`/shelves/${encodeURIComponent(shelved)}`, {}, 'DELETE'), 'taken off the shelf');
    return button;
  }
  const list = el('select.small', { 'aria-label': 'Shelve: quiet for a while' }, el('option', { value: '' }, 'Shelve …'), ...CHOICES.map(([value, words]) => el('option', { value }, words)));
  list.onchange = () => {
    const [what, minutes] = list.value.split(':');
    if (minutes) void after(tell(`/alarms/${encodeURIComponent(id)}/shelve`, { what, minutes: Number(minutes) }), 'shelved');
  };
  return list;
}
