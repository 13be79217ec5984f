// A recording that is played: where it is, how fast, and the buttons that move it.

import { ask, Refused, tell, whyNot } from './api.js';
import { announce, by } from './dom.js';

const POLL_MS = 2000;
// So near to the end is the end.
const END_S = 0.5;

export class Playback {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {ReplayState | null} null: this is no recording */
    this.state = null;
    by('speed').onchange = () => this.speed(Number(by('speed').value));
    setInterval(() => this.app.recorded && !document.hidden && this.look(), POLL_MS);
  }

  async look() {
    this.take(await ask('/replay').catch(() => this.state));
  }

  /** @type {(state: ReplayState | null) => void} */
  take(state) {
    this.state = state;
    by('speed').hidden = !state;
    if (!state) return;
    const known = [...by('speed').options].some(({ value }) => Number(value) === state.speed);
    if (!known) by('speed').add(new Option(`${state.speed}×`, String(state.speed)));
    if (document.activeElement !== by('speed')) by('speed').value = String(state.speed);
    this.app.timeline.changed();
  }

  /** Whether the whole log has been shown. */
  ended() {
    const { state } = this;
    return state !== null && state.read && state.t !== null && state.t_last !== null && state.t >= state.t_last - END_S;
  }

  /** @type {(path: string, body: object) => Promise<boolean>} */
  async move(path, body) {
    try {
      this.take(await tell(`/replay/${path}`, body));
      return true;
    } catch (error) {
      if (!(error instanceof Refused && error.code === 'not_a_replay')) announce(whyNot(error));
      return false;
    }
  }

  pause() { void this.move('pause', { on: true }); }
  /** @type {(speed: number) => void} */
  speed(speed) { void this.move('speed', { speed }); }

  /**
   * Play on from here; from the beginning when this is the end.
   * @type {(t: number) => Promise<void>}
   */
  async play(t) {
    const { t_first = null, t_last = null } = this.state ?? {};
    const from = t_last !== null && t_first !== null && t >= t_last - END_S ? t_first : t;
    if (await this.move('seek', { t: from }) && await this.move('pause', { on: false })) this.app.timeline.follow();
  }

  /** To the end of what has been read. */
  toEnd() {
    if (this.state?.t_last) void this.move('seek', { t: this.state.t_last });
  }
}
