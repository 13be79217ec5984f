// The network: incidents with their diagnosis on top, then the tree of broker, gateways and vehicles behind them.

import { SEVERITIES } from './alarms.js';
import { by, el, facts } from './dom.js';
import { diagnosisCard } from './story.js';
import { short } from './units.js';

// A link that delivers less than this of its usual rate, or comes this much later, is drawn as late.
const THIN = 0.7;
const LATE_S = 0.2;

export class NetworkPane {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.pane = by('pane-network');
    /** @type {NetworkMessage | null} */
    this.data = null;
    this.render();
  }

  /** @type {(data: NetworkMessage) => void} */
  take(data) {
    this.data = data;
    this.render();
  }

  incidents() {
    return this.app.rows().filter(({ alarm, state }) => alarm.event.kind === 'incident' && state !== 'cleared');
  }

  render() {
    const open = this.incidents();
    const badge = by('incidents');
    badge.hidden = !open.length;
    badge.textContent = String(open.length);
    const worst = SEVERITIES.findLast((severity) => open.some((row) => row.severity === severity));
    badge.dataset.severity = worst ?? '';
    if (this.pane.hidden) return;
    const focused = document.activeElement?.getAttribute('data-vehicle');
    /** @type {HTMLElement[]} */
    const parts = [el('h2.hush', {}, 'Network')];
    if (open.length) {
      parts.push(el('section.card', {}, el('h3', {}, `${open.length === 1 ? 'Incident' : 'Incidents'}`, el('span', {}, 'alarms with one cause')),
        ...open.map(({ alarm }) => this.incident(alarm.event))));
    }
    if (!this.data) parts.push(el('p.blank', {}, 'Waiting for the daemon …'));
    else parts.push(this.tree(this.data, new Set(open.flatMap(({ alarm }) => (alarm.event.diagnosis?.location ?? '').split(/[~/]/)))));
    const scrolled = this.pane.scrollTop;
    this.pane.replaceChildren(...parts);
    this.pane.scrollTop = scrolled;
    if (focused) for (const node of this.pane.querySelectorAll('button')) if (node.dataset.vehicle === focused) node.focus();
  }

  /** @type {(event: AlarmEvent) => HTMLElement} */
  incident({ diagnosis, subjects, evidence }) {
    if (diagnosis) return diagnosisCard(diagnosis);
    return el('div.diagnosis', {}, el('h3', {}, `${evidence.alarms?.length ?? 1} alarms around ${subjects.join(', ')}`),
      el('p.tag', {}, 'no diagnosis yet'));
  }

  /** @type {(data: NetworkMessage, marked: Set<string>) => HTMLElement} */
  tree({ feeds, gateways, vehicles, aircraft, unlisted }, marked) {
    const nodes = gateways.map((gateway, i) => this.gateway(gateway, vehicles.filter((v) => (gateway.name ? v.gateway === i : v.gateway < 0)), marked));
    if (aircraft) nodes.push(el('div.node', {}, el('h4', {}, 'ADS-B', el('span', {}, `${aircraft} aircraft`))));
    const tree = el('div.tree', {}, ...feeds.map(feed), el('div.below', {}, ...nodes));
    const note = unlisted ? el('p.tag', {}, `${unlisted} more vehicles whose links are well are not drawn`) : null;
    return el('section.card', {}, el('h3', {}, 'Links', legend()), tree, note);
  }

  /** @type {(gateway: Gateway, listed: LinkedVehicle[], marked: Set<string>) => HTMLElement} */
  gateway({ name, vehicles: count, silent, rate_ratio, latency_excess_s, rtt_s, load }, listed, marked) {
    /** @type {[name: string, value: string][]} */
    const rows = [['lowest rate', rate_ratio === null ? '–' : `${Math.round(100 * rate_ratio)} %`],
      ['most late', latency_excess_s === null ? '–' : `${Math.round(1000 * latency_excess_s)} ms`],
      ['round trip', rtt_s === null ? '–' : `${short(1000 * rtt_s)} ms`]];
    if (load !== null) rows.push(['load', `${Math.round(100 * load)} %`]);
    const dots = listed.map((v) => this.dot(v, marked));
    return el(`div.node${marked.has(name) ? '.bad' : ''}`, {},
      el('h4', {}, name || 'direct', el('span', {}, `${count} ${count === 1 ? 'vehicle' : 'vehicles'}${silent ? `, ${silent} silent` : ''}`)),
      facts(rows), dots.length ? el('div.dots', {}, ...dots) : null);
  }

  /** @type {(vehicle: LinkedVehicle, marked: Set<string>) => HTMLButtonElement} */
  dot({ id, rate_ratio, latency_excess_s, silent }, marked) {
    const state = silent ? 'silent' : rate_ratio !== null && rate_ratio < THIN || Math.abs(latency_excess_s ?? 0) > LATE_S ? 'late' : 'well';
    const words = `${this.app.nameOf(id)}: ${silent ? 'silent' : rate_ratio === null ? 'learning' : `${Math.round(100 * rate_ratio)} % of its usual rate`}`;
    const node = el(`button.${state}${marked.has(id) ? '.marked' : ''}`, { type: 'button', title: words, 'aria-label': words }, el('i'));
    node.dataset.vehicle = id;
    node.onclick = () => this.app.select(id, { go: true, open: true });
    return node;
  }
}

/** @type {(feed: Feed) => HTMLElement} */
function feed({ name, connected, type }) {
  // a log that was read to its end is as it should be
  const well = connected || type === 'log';
  const words = connected ? 'connected' : type === 'log' ? 'read to its end' : 'not connected';
  return el(`div.node${well ? '' : '.bad'}`, {}, el('h4', {}, el('span.tag', {}, el('i.health', { 'data-health': well ? 'well' : 'silent' }), type),
    el('span', {}, words)), el('p.tag', {}, name));
}

function legend() {
  return el('span.tag', {}, el('i.health', { 'data-health': 'well' }), 'well', el('i.health', { 'data-health': 'late' }), 'late or thin',
    el('i.health', { 'data-health': 'silent' }), 'silent');
}
