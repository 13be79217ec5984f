// One vehicle: what it does now, its scores against their threshold, its residual channels, its sensors and its link.

import { lineChart } from './charts.js';
import { by, el, facts } from './dom.js';
import { ADSB } from './fleet.js';
import { altitude, climb, heading, label, short, span, speed } from './units.js';

/** @type {Record<string, string>} */
const WORDS = { adsb: 'ADS-B', gps: 'GPS', imu: 'IMU', link: 'link', action: 'action', route: 'route' };

export class VehiclePane {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.pane = by('pane-vehicle');
    /** @type {VehicleMessage | null} */
    this.detail = null;
    /** @type {Set<string>} */
    this.opened = new Set();
    this.blank();
  }

  blank() {
    this.pane.replaceChildren(el('p.blank', {}, 'Pick a vehicle on the map, in the alarm list, or find it by name.'));
  }

  /** @type {(detail: VehicleMessage) => void} */
  take(detail) {
    if (detail.id !== this.app.selected) return;
    this.detail = detail;
    this.render();
  }

  render() {
    const { app } = this;
    if (!app.selected) {
      this.detail = null;
      this.blank();
      return;
    }
    if (this.pane.hidden) return;
    const detail = this.detail?.id === app.selected ? this.detail : null;
    const series = this.past();
    const known = detail?.known ? detail : null;
    const parts = [this.head(detail), this.scores(known, series)];
    if (known) parts.push(...this.inside(known));
    const scrolled = this.pane.scrollTop;
    const focused = document.activeElement?.getAttribute('data-stream');
    this.pane.replaceChildren(...parts);
    this.pane.scrollTop = scrolled;
    if (focused) for (const node of this.pane.querySelectorAll('summary')) if (node.dataset.stream === focused) node.focus();
    this.draw(known, series);
  }

  /**
   * From the pictures of the last minutes: this works for every vehicle, whenever it was selected.
   * @type {() => Series}
   */
  past() {
    const { selected } = this.app;
    const slot = selected === null ? undefined : this.app.fleet.slots.get(selected);
    /** @type {Series} */
    const series = { t: [], score: [], alt: [], speed: [] };
    if (slot === undefined) return series;
    this.app.history.follow(slot, (t, columns, row) => {
      series.t.push(t);
      series.score.push(columns.score[row]);
      series.alt.push(columns.alt_m[row]);
      series.speed.push(columns.speed_mps[row]);
    });
    return series;
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
    return el('section.card', {}, title,
      el('dl.now', {}, ...now.map(([what, value]) => el('div', {}, el('dt', {}, what), el('dd', {}, value)))),
      marks.length ? el('p.tag', {}, `active: ${marks.map(({ alarm }) => alarm.event.kind.replaceAll('_', ' ')).join(', ')}`) : null);
  }

  /** @type {(detail: KnownVehicle | null, series: Series) => HTMLElement} */
  scores(detail, series) {
    const last = series.score[series.score.length - 1];
    const worst = detail?.scores?.length ? detail.scores.reduce((p, q) => (q.ratio > p.ratio ? q : p)) : null;
    const chart = this.chart('score', 'highest score over its threshold', last === last && last !== undefined
      ? `${short(last)}${worst ? ` ${worst.kind.replaceAll('_', ' ')}` : ''}` : 'not judged', true);
    const bars = (detail?.scores ?? []).map(({ kind, ratio }) => bar(kind.replaceAll('_', ' '), ratio, 1));
    return el('section.card', {}, el('h3', {}, 'Scores', el('span', {}, 'alarm due at 1')), chart,
      bars.length ? el('ul.bars', {}, ...bars) : null,
      el('div.two', {}, this.chart('alt', 'altitude', ''), this.chart('speed', 'speed', '')));
  }

  /** @type {(name: string, title: string, value: string, tall?: boolean) => HTMLElement} */
  chart(name, title, value, tall = false) {
    const canvas = el('canvas', { role: 'img', 'aria-label': `${title} over the last minutes${value ? `, now ${value}` : ''}` });
    canvas.dataset.chart = name;
    return el(`div.chart${tall ? '.tall' : ''}`, {}, el('header', {}, el('span', {}, title), el('b', {}, value)), canvas);
  }

  /** @type {(detail: KnownVehicle) => HTMLElement[]} */
  inside(detail) {
    const parts = [this.coverage(detail.coverage)];
    const judged = detail.scores.find(({ kind }) => kind === 'gps_imu');
    if (judged?.numbers) {
      const limit = judged.threshold ?? NaN;
      const channels = Object.entries(judged.numbers).filter(([name]) => name.endsWith('_sigma'))
        .flatMap(([name, v]) => (v === null ? [] : [bar(label(name)[0], v, limit)]));
      parts.push(el('section.card', {}, el('h3', {}, 'GPS against IMU, by channel', el('span', {}, `limit ${short(limit)} σ`)),
        el('ul.bars', {}, ...channels)));
    }
    parts.push(el('section.card', {}, el('h3', {}, 'Streams'), el('div.streams', {}, ...detail.streams.map((s) => this.stream(s)))));
    const raw = ['specific force', 'angular rate', 'satellites'].filter((name) => detail.series[name]);
    if (raw.length) {
      parts.push(el('section.card', {}, el('h3', {}, 'Newest samples'),
        el('div.two', {}, ...raw.map((name) => this.chart(name, name, lastOf(detail.series[name]))))));
    }
    if (detail.link) parts.push(this.link(detail.link));
    return parts;
  }

  /**
   * Who watches it, and who does not and why: silence means that all is well only where somebody looks.
   * @type {(coverage: Coverage) => HTMLElement}
   */
  coverage({ watched, partly, not_watched }) {
    const by_whom = Object.keys(watched).map((name) => name.replaceAll('_', ' ')).join(', ');
    const blind = not_watched.map(({ detector, say }) => el('li.over', {}, `not by ${detector.replaceAll('_', ' ')}: ${say}`));
    const halves = partly.map(({ detector, say }) => el('li', {}, `partly by ${detector.replaceAll('_', ' ')}: ${say}`));
    const nobody = partly.length ? 'in part only' : 'by nobody';
    return el('section.card', {}, el('h3', {}, 'Watched', el('span', {}, by_whom || nobody)),
      blind.length || halves.length ? el('ul.blind', {}, ...blind, ...halves) : null);
  }

  /** @type {(stream: Stream) => HTMLElement} */
  stream({ kind, age_s, rate_hz, samples, values }) {
    const usual = rate_hz ? 1 / rate_hz : 5;
    const health = age_s > Math.max(10 * usual, 10) ? 'silent' : age_s > Math.max(4 * usual, 4) ? 'late' : 'well';
    const summary = el('summary', {}, el('span.health', { role: 'img', 'aria-label': health, 'data-health': health }),
      el('span', {}, WORDS[kind] ?? kind), el('span.muted', {}, rate_hz ? `${short(rate_hz)} Hz` : `${samples} samples`),
      el('span.muted', {}, `${span(Math.max(0, age_s))} ago`));
    summary.dataset.stream = kind;
    const node = el('details', { open: this.opened.has(kind) }, summary,
      facts(values.map(([name, value, unit]) => [name.replaceAll('_', ' '), `${short(value)}${unit ? ` ${unit}` : ''}`])));
    node.ontoggle = () => (node.open ? this.opened.add(kind) : this.opened.delete(kind));
    return node;
  }

  /** @type {(link: Link) => HTMLElement} */
  link(link) {
    /** @type {[name: string, value: string][]} */
    const rows = [['gateway', link.via || 'none'], ['latency over usual', milliseconds(link.latency_excess_s)],
      ['jitter', milliseconds(link.jitter_s)], ['reordered', short(link.reordered)]];
    for (const s of link.streams) {
      const rate = s.silent ? 'silent' : s.rate_ratio === null ? 'learning' : `${Math.round(100 * s.rate_ratio)} % of ${short(s.usual_hz)} Hz`;
      rows.push([WORDS[s.kind] ?? s.kind, rate]);
    }
    return el('section.card', {}, el('h3', {}, 'Link'), facts(rows));
  }

  /** @type {(detail: KnownVehicle | null, series: Series) => void} */
  draw(detail, series) {
    const { history } = this.app;
    const window = { from: history.first, to: history.last, at: this.app.shownTime() };
    for (const canvas of this.pane.querySelectorAll('canvas')) {
      const name = canvas.dataset.chart ?? '';
      if (name === 'score') lineChart(canvas, series.t, series.score, { limit: 1, floor: 0, ...window });
      else if (name === 'alt' || name === 'speed') lineChart(canvas, series.t, series[name], window);
      else if (detail) lineChart(canvas, detail.series[name].t, detail.series[name].v);
    }
  }
}

/** @type {(s: number | null) => string} */
const milliseconds = (s) => `${short(s === null ? s : 1000 * s)} ms`;

/** @type {(points: Points) => string} */
const lastOf = ({ v, unit }) => `${short(v[v.length - 1])}${unit ? ` ${unit}` : ''}`;

/**
 * A value on a rail with a mark at its limit; all rails end at twice their limit, so that they can be compared.
 * @type {(name: string, value: number, limit: number) => HTMLElement}
 */
function bar(name, value, limit) {
  const end = 2 * limit;
  const [fill, mark] = [el('i'), el('s')];
  fill.style.width = `${Math.max(0, Math.min(100, 100 * value / end))}%`;
  mark.style.left = `${100 * limit / end}%`;
  return el(value >= limit ? 'li.over' : 'li', {}, el('span.name', { title: name }, name), el('span.rail', {}, fill, mark), el('span.value', {}, short(value)));
}
