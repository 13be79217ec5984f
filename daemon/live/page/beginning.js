// What a page that was just opened asks for: what its address says, and what the daemon remembers from before.

import { ask } from './api.js';
import { eastOf, northOf } from './fleet.js';
import { learnKinds } from './kinds.js';
import { alarmOf } from './past.js';
import { whoReads } from './reader.js';

/** @type {(app: App) => Promise<void>} */
export async function begin(app) {
  app.address.read();
  void learnSettings(app);
  void learnKinds().then((kinds) => kinds.forEach((kind) => app.list.addKind(kind)));
  /** @type {AlarmPage} */
  const { alarms } = await ask('/alarms', { active: false, sort: 't_last', limit: 200 }).catch(() => ({ alarms: [], total: 0, next: null }));
  if (app.recorded || !alarms.length) return;
  app.alarms.remember(alarms.map(alarmOf));
  app.alarmsChanged();
}

/**
 * What the configuration says about the map, and about who looks at it.
 * @type {(app: App) => Promise<void>}
 */
async function learnSettings(app) {
  const settings = await fetch('/page/settings.json').then((answer) => answer.json()).catch(() => ({}));
  if (settings.tiles) app.map.base.useTiles(settings.tiles, settings.credit);
  if (settings.site) app.map.range.begin([eastOf(settings.site[1]), northOf(settings.site[0])]);
  whoReads(settings.token ?? '', settings.may_operate ?? true);
}
