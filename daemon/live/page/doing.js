// What a person does with alarms: walk through them, take care of one, hand on a link, go to one that was long ago.

import { ask, tell, whyNot } from './api.js';
import { announce } from './dom.js';

/**
 * Go to an alarm that is not on the list: to the moment when it was raised.
 * @type {(app: App, id: string) => Promise<void>}
 */
export async function find(app, id) {
  /** @type {AlarmLife | null} */
  const life = await ask(`/alarms/${encodeURIComponent(id)}`).catch(() => null);
  if (!life || app.chosen !== id || (app.rows().some(({ alarm }) => alarm.id === id) && app.timeline.paused === null)) return;
  app.wantsToGo = true;
  app.timeline.show(life.alarm.t_raised);
}

/**
 * The next or previous alarm of the list.
 * @type {(app: App, step: number) => void}
 */
export function walk(app, step) {
  const ids = app.list.folded().map(({ row }) => row.alarm.id);
  if (!ids.length) return;
  const at = app.chosen === null ? -1 : ids.indexOf(app.chosen);
  const next = ids[at < 0 ? 0 : Math.max(0, Math.min(ids.length - 1, at + step))];
  app.showPane('alarms');
  app.choose(next, { jump: app.search.on });
  app.list.rows.get(next)?.open.focus();
  app.list.rows.get(next)?.li.scrollIntoView({ block: 'nearest' });
}

/**
 * Ask for a change of an alarm, and say how that went.
 * @type {(app: App, id: string, what: string, body: object, done: string) => Promise<void>}
 */
async function change(app, id, what, body, done) {
  try {
    await tell(`/alarms/${encodeURIComponent(id)}/${what}`, body);
    announce(done);
  } catch (error) {
    announce(whyNot(error));
  }
  app.past.again();
}

/**
 * Mark an alarm as looked after, or take that back.
 * @type {(app: App, id: string) => Promise<void>}
 */
export async function acknowledge(app, id) {
  const on = !app.alarm(id)?.ack;
  await change(app, id, 'acknowledge', { on }, on ? 'acknowledged' : 'acknowledgement taken back');
}

/**
 * Take the lasting state that an alarm is about as normal.
 * @type {(app: App, id: string) => Promise<void>}
 */
export async function accept(app, id) {
  await change(app, id, 'accept', {}, 'accepted: the alarm has ended');
}

/**
 * A link to an alarm, or to what is shown, for the clipboard; the button says that it is there.
 * @type {(app: App, id: string | null, button: HTMLElement, share?: boolean) => Promise<void>}
 */
export async function copyLink(app, id, button, share = false) {
  const done = await handOn(app.address.link(id === null ? undefined : app.alarm(id)), share);
  announce(done ? 'link copied' : 'the browser does not let us copy');
  button.classList.toggle('done', done);
  setTimeout(() => button.classList.remove('done'), 1500);
}

/**
 * Hand a link on: to the clipboard, or where the system shares.
 * @type {(url: string, share: boolean) => Promise<boolean>}
 */
async function handOn(url, share) {
  if (share && navigator.share) return navigator.share({ url, title: 'Watchkeeper' }).then(() => true, () => false);
  if (navigator.clipboard) return navigator.clipboard.writeText(url).then(() => true, () => false);
  // a page that was opened from another machine without encryption has no clipboard
  const box = document.createElement('textarea');
  box.value = url;
  document.body.append(box);
  box.select();
  const done = document.execCommand('copy');
  box.remove();
  return done;
}
