// What makes silence worth less: input that is refused, vehicles that are not watched, outputs that do not deliver.

import { ask } from './api.js';
import { by, el, setText } from './dom.js';

const REFUSED_S = 60;
const LISTED = 40;

export class Banner {
  constructor() {
    /** @type {{ at: number, dropped: number }[]} the last minute */
    this.counts = [];
    by('banner').ontoggle = () => by('banner').open && this.more();
  }

  /**
   * `others`: what the page itself cannot do.
   * @type {(picture: Picture, recorded: boolean, others: string[]) => void}
   */
  take({ figures, state, warnings, unwatched }, recorded, others) {
    const now = performance.now();
    this.counts.push({ at: now, dropped: figures.dropped });
    while (now - this.counts[0].at > 1000 * REFUSED_S) this.counts.shift();
    const refused = figures.dropped - this.counts[0].dropped;
    // that a log has ended is no trouble
    const lines = [...(recorded ? [] : state), ...warnings, ...others];
    if (refused > 0) lines.unshift(`${refused.toLocaleString('en')} ${refused === 1 ? 'message was' : 'messages were'} refused in the last minute: see the log of the daemon`);
    if (unwatched) lines.unshift(`${unwatched.toLocaleString('en')} ${unwatched === 1 ? 'vehicle is' : 'vehicles are'} not watched as they should be`);
    by('banner').hidden = !lines.length;
    setText(by('banner-words'), lines.length > 1 ? `${lines[0]} (and ${lines.length - 1} more)` : lines[0] ?? '');
    const key = lines.join('\n');
    if (by('banner-lines').dataset.key !== key) {
      by('banner-lines').dataset.key = key;
      by('banner-lines').replaceChildren(...lines.slice(1).map((line) => el('li', {}, line)));
    }
  }

  /** Who is not watched, and why: asked for when somebody wants to know. */
  async more() {
    /** @type {{ not_watched: { id: string, detector: string, say: string }[], total: number, troubles: string[] }} */
    const found = await ask('/watch').catch(() => ({ not_watched: [], total: 0, troubles: [] }));
    const lines = [...found.troubles, ...found.not_watched.slice(0, LISTED).map(({ id, detector, say }) => `${id}, ${detector.replaceAll('_', ' ')}: ${say}`)];
    if (found.total > LISTED) lines.push(`and ${(found.total - LISTED).toLocaleString('en')} more`);
    by('banner-watch').replaceChildren(...lines.map((line) => el('li', {}, line)));
  }
}
