// One vehicle: what it does at the moment that is shown, and charts of its past with the times of its alarms.

import { lineChart, pointed, valueAt } from './charts.js';
import { by, el } from './dom.js';
import { ADSB } from './fleet.js';
import { kindOf } from './kinds.js';
import { bar, channels, linkCard, stream, watched } from './sensors.js';
import { altitude, climb, clock, heading, label, short, speed } from './units.js';
import { SPANS_S, VehiclePast } from './vehiclepast.js';

// Scores and channels that never came near their limit are not drawn, and of the others the highest.
const NEAR = 0.4;
const CHARTS = 6;

export class VehiclePane {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.pane = by('pane-vehicle');
    this.past = new VehiclePast(app);
    /** @type {VehicleMessage | null} */
    this.detail = null;
    /** @type {Set<string>} */
    this.opened = new Set();
    /** @type {Map<string, Chart>} what is drawn, by the canvas's name */
    this.charts = new Map();
    this.blank();
  }

  blank() {
    this.pane.replaceChildren(el('p.blank', {}, 'Pick a vehicle on the map, in a list, or find it by name.'));
  }

  /** @type {(detail: VehicleMessage) => void} */
  take(detail) {
    if (detail.id !== this.app.selected) return;
    this.detail = detail;
    this.render();
  }

  render() {
    const { selected } = this.app;
    if (!selected) {
      this.detail = null;
      this.blank();
      return;
    }
    // nothing is taken away under the pointer that reads a chart, or from a list that is open
    if (this.pane.hidden || this.pane.matches(':has(canvas:hover), :has(select:focus)')) return;
    const detail = this.detail?.id === selected ? this.detail : null;
    // what the daemon says of it is about now
    const known = detail?.known && this.app.timeline.paused === null ? detail : null;
    this.charts.clear();
    const story = this.story(selected);
    const parts = [this.head(detail), this.scores(known, story), this.flight(story), this.residuals(story)];
    if (known) parts.push(...this.inside(known));
    const scrolled = this.pane.scrollTop;
    const focused = document.activeElement?.getAttribute('data-stream');
    this.pane.replaceChildren(...parts.filter((part) => part !== null));
    this.pane.scrollTop = scrolled;
    if (focused) for (const node of this.pane.querySelectorAll('summary')) if (node.dataset.stream === focused) node.focus();
    this.draw();
  }

  /**
   * From the daemon's history; where there is none, from the pictures that this tab has.
   * @type {(id: string) => VehicleStory}
   */
  story(id) {
    const found = this.past.of(id);
    const slot = this.app.fleet.slots.get(id);
    if (found.track || slot === undefined || this.app.past.kept) return found;
    /** @type {VehicleTrack} */
    const track = { t: [], alt_m: [], speed_mps: [], score: [] };
    this.app.history.follow(slot, (t, columns, row) => {
      track.t.push(t);
      track.alt_m.push(columns.alt_m[row]);
      track.speed_mps.push(columns.speed_mps[row]);
      track.score.push(columns.score[row]);
    });
    return { ...found, id, from: this.app.history.first, to: this.app.history.last, track };
  }

  /** @type {(detail: VehicleMessage | null) => HTMLElement} */
  head(detail) {
    const { fleet, selected } = this.app;
    const row = fleet.rowOfId(selected);
    if (!selected || !fleet.picture) return el('section.card');
    const name = this.app.nameOf(selected);
    const title = el('h2', {}, name, name === selected ? null : el('small', {}, selected));
    if (row < 0) {
      const why = detail && !detail.known ? 'Not in the fleet: it was not heard for a long time.' : 'It has sent no position yet.';
      return el('section.card', {}, title, el('p.tag', {}, why));
    }
    const c = fleet.picture.columns;
    const aircraft = c.frame[row] === ADSB;
    const now = [['altitude', altitude(c.alt_m[row], aircraft)], ['speed', speed(c.speed_mps[row], aircraft)],
      ['track', heading(c.track_deg[row])], ['vertical', climb(c.climb_mps[row], aircraft)]];
    const marks = this.app.rows()
      .filter(({ alarm, state }) => state !== 'cleared' && alarm.event.subjects.includes(selected));
    const all = el('button.small', { type: 'button' }, 'All its alarms');
    all.onclick = () => this.app.search.about(selected);
    return el('section.card', {}, title,
      el('dl.now', {}, ...now.map(([what, value]) => el('div', {}, el('dt', {}, what), el('dd', {}, value)))),
      marks.length ? el('p.tag', {}, `active: ${marks.map(({ alarm }) => alarm.event.kind.replaceAll('_', ' ')).join(', ')}`) : null,
      el('div.acts', {}, all));
  }

  /** @type {(detail: KnownVehicle | null, story: VehicleStory) => HTMLElement} */
  scores(detail, story) {
    const { track, scores } = story;
    const shown = valueAt(track?.t ?? [], track?.score ?? [], this.app.timeline.paused ?? Infinity);
    const chart = this.chart('score', 'highest score over its threshold', story, track?.t ?? [], track?.score ?? [], short, { limit: 1, floor: 0 }, shown === null ? 'not judged' : short(shown));
    const bars = (detail?.scores ?? []).map(({ kind, ratio }) => bar(kind.replaceAll('_', ' '), ratio, 1));
    const kinds = highest(scores, 1).map(([kind, values]) => this.chart(kind, kind.replaceAll('_', ' '), story, scores?.t ?? [], values, short, { limit: 1, floor: 0 }));
    return el('section.card', {}, el('h3', {}, 'Scores', this.spans()), chart,
      bars.length ? el('ul.bars', {}, ...bars) : null, kinds.length ? el('div.two', {}, ...kinds) : null);
  }

  /** How much of the past the charts show. */
  spans() {
    const list = el('select', { 'aria-label': 'Time that the charts show' }, ...Object.entries(SPANS_S).map(([words, s]) => el('option', { value: String(s), selected: s === this.past.span_s }, words)));
    list.onchange = () => {
      this.past.span_s = Number(list.value);
      list.blur();
      this.render();
    };
    return el('span', {}, list, ' alarm due at 1');
  }

  /** @type {(story: VehicleStory) => HTMLElement} */
  flight(story) {
    const { fleet, selected } = this.app;
    const row = fleet.rowOfId(selected);
    const aircraft = row >= 0 && fleet.picture?.columns.frame[row] === ADSB;
    const t = story.track?.t ?? [];
    return el('section.card', {}, el('h3', {}, 'Flight'), el('div.two', {},
      this.chart('alt', 'altitude', story, t, story.track?.alt_m ?? [], (m) => altitude(m, aircraft)),
      this.chart('speed', 'speed', story, t, story.track?.speed_mps ?? [], (mps) => speed(mps, aircraft), { floor: 0 })));
  }

  /** @type {(story: VehicleStory) => HTMLElement | null} */
  residuals(story) {
    const limit = kindOf('gps_imu')?.threshold ?? NaN;
    const drawn = highest(story.residuals, limit).map(([name, values]) => this.chart(name, label(name)[0], story, story.residuals?.t ?? [], values,
      (v) => `${short(v)} σ`, { limit, floor: 0 }));
    return drawn.length ? el('section.card', {}, el('h3', {}, 'GPS against IMU', el('span', {}, `limit ${short(limit)} σ`)), el('div.two', {}, ...drawn)) : null;
  }

  /** @type {(detail: KnownVehicle) => HTMLElement[]} */
  inside(detail) {
    const judged = channels(detail.scores);
    const parts = [watched(detail.coverage), ...(judged ? [judged] : [])];
    if (detail.streams.length) parts.push(el('section.card', {}, el('h3', {}, 'Streams'), el('div.streams', {}, ...detail.streams.map((each) => stream(each, this.opened)))));
    const raw = ['specific force', 'angular rate', 'satellites'].filter((name) => detail.series[name]);
    if (raw.length) {
      parts.push(el('section.card', {}, el('h3', {}, 'Newest samples'), el('div.two', {}, ...raw.map((name) => {
        const { t, v, unit } = detail.series[name];
        return this.chart(name, name, { from: t[0], to: t[t.length - 1], spans: [] }, t, v, (x) => `${short(x)} ${unit}`, {}, `${short(v[v.length - 1])} ${unit}`);
      }))));
    }
    if (detail.link) parts.push(linkCard(detail.link));
    return parts;
  }

  /**
   * A chart: its value under the pointer is written above it, and a click shows that moment.
   * @type {(name: string, title: string, span: Pick<VehicleStory, 'from' | 'to' | 'spans'>, t: number[], v: Values, words: (v: number) => string, look?: Look, value?: string) => HTMLElement}
   */
  chart(name, title, { from, to, spans }, t, v, words, look = {}, value = '') {
    const canvas = el('canvas', { role: 'img', 'aria-label': `${title} through time${value ? `, ${value}` : ''}` });
    const reading = el('b', {}, value);
    canvas.dataset.chart = name;
    canvas.onpointermove = ({ clientX }) => {
      const found = pointed(canvas, clientX, t, v, from, to);
      if (found) reading.textContent = `${found.v === null ? '–' : words(found.v)} at ${clock(found.t)}`;
    };
    canvas.onpointerleave = () => { reading.textContent = value; };
    canvas.onclick = ({ clientX }) => {
      const found = pointed(canvas, clientX, t, v, from, to);
      if (found) this.app.timeline.show(found.t, { push: true });
    };
    this.charts.set(name, { t, v, look: { from, to, spans, words, ...look } });
    return el(`div.chart${name === 'score' ? '.tall' : ''}`, {}, el('header', {}, el('span', {}, title), reading), canvas);
  }

  draw() {
    const at = this.app.shownTime();
    for (const canvas of this.pane.querySelectorAll('canvas')) {
      const chart = this.charts.get(canvas.dataset.chart ?? '');
      if (chart) lineChart(canvas, chart.t, chart.v, { at, ...chart.look });
    }
  }
}

/**
 * Columns that came near their limit, the highest first.
 * @type {(channels: Channels | null, limit: number) => [name: string, values: Values][]}
 */
function highest(channels, limit) {
  /** @type {(values: Values) => number} */
  const most = (values) => values.reduce((/** @type {number} */ high, v) => Math.max(high, v ?? -Infinity), -Infinity);
  return Object.entries(channels?.columns ?? {}).filter(([, values]) => most(values) >= NEAR * limit)
    .sort(([, p], [, q]) => most(q) - most(p)).slice(0, CHARTS);
}
