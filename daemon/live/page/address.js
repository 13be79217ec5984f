// What is shown, in the page's address: moment, choice, filters, pane and map, so that a link shows the same again.

import { SEVERITIES } from './alarms.js';
import { PANES } from './controls.js';
import { find } from './doing.js';
import { by } from './dom.js';
import { eastOf, latOf, lonOf, northOf } from './fleet.js';

// Moves of the slider and of the map are written when they rest.
const REST_MS = 400;

export class Address {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** @type {number | undefined} */
    this.due = undefined;
    this.push = false;
    this.reading = false;
    window.addEventListener('popstate', () => this.read());
  }

  /**
   * Something that belongs into the address changed; `push`: it is worth a step of the browser's back button.
   * @type {(push: boolean) => void}
   */
  changed(push) {
    if (this.reading) return;
    clearTimeout(this.due);
    if (!push) {
      this.due = setTimeout(() => this.write(), REST_MS);
    } else if (!this.push) {
      // once, after all that happens together
      this.push = true;
      queueMicrotask(() => this.write());
    }
  }

  write() {
    const hash = this.hash();
    const [push, before] = [this.push, location.hash.slice(1)];
    this.push = false;
    if (hash === before) return;
    const url = `${location.pathname}${location.search}${hash ? `#${hash}` : ''}`;
    if (push) history.pushState(null, '', url); else history.replaceState(null, '', url);
  }

  /**
   * What is shown as text; `more` replaces parts of it.
   * @type {(more?: Record<string, string>) => string}
   */
  hash(more = {}) {
    const { app } = this;
    const { filter } = app.list;
    const pane = PANES.find((name) => !by(`pane-${name}`).hidden) ?? 'alarms';
    /** @type {Record<string, string>} */
    const parts = {
      t: app.timeline.paused === null ? '' : String(Math.round(1000 * app.timeline.paused) / 1000),
      alarm: app.chosen ?? '', vehicle: app.selected ?? '', pane: pane === 'alarms' ? '' : pane,
      q: by('q').value.trim(), when: by('when').value, kind: filter.kind,
      severity: filter.severities.size < SEVERITIES.length ? [...filter.severities].join(',') || 'none' : '',
      open: filter.open ? '1' : '', cleared: filter.cleared ? '' : '0', map: this.map(), ...more,
    };
    return new URLSearchParams(Object.entries(parts).filter(([, value]) => value)).toString();
  }

  /** Where the map is, unless it follows the fleet by itself: longitude, latitude and scale, or metres of the local frame. */
  map() {
    const { world, views, auto } = this.app.map;
    if (auto[world] && this.app.timeline.paused === null) return '';
    const { x, y, scale } = views[world];
    const place = world === 'earth' ? [lonOf(x).toFixed(5), latOf(y).toFixed(5)] : ['local', x.toFixed(1), y.toFixed(1)];
    return [...place, scale.toPrecision(4)].join(',');
  }

  /** Show what the address says. */
  read() {
    this.reading = true;
    const { app } = this;
    const parts = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    app.list.restore(parts);
    const pane = PANES.find((name) => name === parts.pane) ?? 'alarms';
    app.showPane(pane);
    if ((parts.vehicle || null) !== app.selected) app.select(parts.vehicle || null);
    app.chosen = parts.alarm || null;
    const t = parts.t ? Number(parts.t) : NaN;
    if (t === t) app.timeline.show(t);
    else if (app.timeline.paused !== null) app.timeline.follow();
    else if (app.chosen) void find(app, app.chosen);
    if (parts.map) this.place(parts.map);
    else if (app.chosen && t === t) app.wantsToGo = true;
    app.list.render();
    this.reading = false;
  }

  /** @type {(words: string) => void} */
  place(words) {
    const { map } = this.app;
    const parts = words.split(',');
    const local = parts[0] === 'local';
    const [x, y, scale] = (local ? parts.slice(1) : parts).map(Number);
    if (!(x === x && y === y && scale > 0)) return;
    this.app.showWorld(local ? 'local' : 'earth');
    map.taken();
    map.view.set(local ? x : eastOf(x), local ? y : northOf(y), scale);
  }

  /**
   * A link to what is shown; of an alarm that goes on, with the moment of its newest event.
   * @type {(alarm?: Alarm) => string}
   */
  link(alarm) {
    const t = this.app.timeline.paused ?? alarm?.event.t ?? this.app.fleet.picture?.t ?? null;
    const more = { ...(t === null ? {} : { t: String(Math.round(1000 * t) / 1000) }), ...(alarm ? { alarm: alarm.id } : {}) };
    return `${location.origin}${location.pathname}#${this.hash(more)}`;
  }
}
