// What a person prefers: units, a sound, a notification of the browser, the range outline. Kept in this browser only.

import { by, setText } from './dom.js';
import { setUnits } from './units.js';

const KEY = 'watchkeeper-prefs';
// Tones of a warning, a caution and an advisory, Hz, and how long each lasts.
/** @type {Record<Severity, number[]>} */
const TONES = { warning: [880, 660, 880], caution: [660, 660], advisory: [440] };
const TONE_S = 0.16;
// Alarms that follow each other faster than this are one sound, unless one is more severe.
const QUIET_MS = 1500;
// Why there are no notifications.
const REFUSED = 'The browser does not allow this page to notify you: allow notifications in its settings for this site.';
const INSECURE = 'Browsers notify only for pages over HTTPS, or on this machine: this page came over plain HTTP.';
/** @type {Severity[]} */
const ORDER = ['advisory', 'caution', 'warning'];

export class Prefs {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.kept = { units: 'auto', sound: false, notify: false, range: false };
    try { Object.assign(this.kept, JSON.parse(localStorage.getItem(KEY) ?? '{}')); } catch { /* nothing kept */ }
    /** @type {AudioContext | null} */
    this.audio = null;
    this.sounded = -QUIET_MS;
    this.loudest = 0;
    const { units, sound, notify, range } = { units: by('units'), sound: by('sound'), notify: by('notify'), range: by('range') };
    units.value = this.kept.units;
    sound.checked = this.kept.sound;
    range.checked = this.kept.range;
    notify.checked = this.kept.notify && this.allowed;
    units.onchange = () => this.change({ units: units.value });
    range.onchange = () => this.change({ range: range.checked });
    sound.onchange = () => {
      this.change({ sound: sound.checked });
      if (sound.checked) this.play('advisory');
    };
    notify.onchange = async () => {
      const wanted = notify.checked;
      if (wanted && 'Notification' in window) await Notification.requestPermission();
      notify.checked = wanted && this.allowed;
      setText(by('notify-problem'), wanted && !this.allowed ? (window.isSecureContext ? REFUSED : INSECURE) : '');
      this.change({ notify: notify.checked });
    };
    setUnits(this.kept.units);
    if (this.kept.sound) this.audio = new AudioContext();
    // browsers let a page sound only after somebody has touched it
    for (const touch of /** @type {const} */ (['pointerdown', 'keydown'])) document.addEventListener(touch, () => void this.audio?.resume());
  }

  /**
   * What was asked for and cannot be done now, in words.
   * @type {() => string[]}
   */
  troubles() {
    const found = [];
    if (this.kept.sound && this.audio?.state !== 'running') found.push('Alarms make no sound yet: the browser waits for a click or a key on this page');
    if (this.kept.notify && !this.allowed) found.push('Alarms are not shown as notifications: the browser does not allow them to this page');
    return found;
  }

  get allowed() {
    return 'Notification' in window && Notification.permission === 'granted';
  }

  /** @type {(some: Partial<Prefs['kept']>) => void} */
  change(some) {
    Object.assign(this.kept, some);
    try { localStorage.setItem(KEY, JSON.stringify(this.kept)); } catch { /* for this visit only */ }
    setUnits(this.kept.units);
    this.app.map.restyle();
    if (this.app.fleet.picture) this.app.shown(this.app.fleet.picture);
  }

  /**
   * An alarm was raised that nobody has shelved.
   * @type {(alarm: Alarm) => void}
   */
  raised({ event, say, id, shelved }) {
    if (shelved) return;
    if (this.kept.sound) this.play(event.severity);
    if (!this.kept.notify || !document.hidden || !this.allowed) return;
    const shown = new Notification(`${event.severity}: ${event.kind.replaceAll('_', ' ')}`, { body: say, tag: id });
    shown.onclick = () => {
      window.focus();
      this.app.choose(id);
    };
  }

  /** @type {(severity: Severity) => void} */
  play(severity) {
    const now = performance.now();
    const rank = ORDER.indexOf(severity);
    if (now - this.sounded < QUIET_MS && rank <= this.loudest) return;
    this.sounded = now;
    this.loudest = rank;
    const audio = this.audio ??= new AudioContext();
    TONES[severity].forEach((hz, i) => {
      const [tone, volume] = [audio.createOscillator(), audio.createGain()];
      const at = audio.currentTime + i * (TONE_S + 0.04);
      tone.frequency.value = hz;
      volume.gain.setValueAtTime(0.0001, at);
      volume.gain.exponentialRampToValueAtTime(0.2, at + 0.02);
      volume.gain.exponentialRampToValueAtTime(0.0001, at + TONE_S);
      tone.connect(volume).connect(audio.destination);
      tone.start(at);
      tone.stop(at + TONE_S);
    });
  }
}
