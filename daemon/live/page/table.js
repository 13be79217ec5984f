// All vehicles as a table: sorted, filtered, with a watch list. Only the rows that can be seen exist; they are used again.

import { by, el, setText } from './dom.js';
import { ADSB } from './fleet.js';
import { altitude, heading, short, span, speed } from './units.js';

const ROW_PX = 30;
const SPARE = 4;

/** Columns: name, head, and the number or word that rows are sorted by.
 * @type {[name: SortBy, head: string, title: string][]}
 */
const COLUMNS = [['name', 'vehicle', 'callsign, or id'], ['alt_m', 'alt', 'altitude'], ['speed_mps', 'speed', 'speed over ground'],
  ['track_deg', 'track', 'direction of flight'], ['age_s', 'age', 'time since its last report'], ['score', 'score', 'highest score over its threshold: at 1 an alarm is due']];

export class FleetTable {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.pane = by('pane-fleet');
    /** @type {SortBy} */
    this.by = 'score';
    this.down = true;
    this.text = '';
    this.only = { watched: false, alarms: false };
    /** @type {number[]} slots, in the order of the table */
    this.order = [];
    this.pointed = false;
    /** @type {Fleet['names'] | null} */
    this.names = null;
    /** @type {TableRow[]} */
    this.rows = [];
    this.body = el('div.rows', { role: 'rowgroup' });
    this.spacer = el('div.spacer', { 'aria-hidden': 'true' });
    this.scroller = el('div.scroll', { role: 'table', 'aria-label': 'All vehicles', tabIndex: '0' });
    this.build();
  }

  build() {
    const find = el('input', { type: 'search', placeholder: 'Filter vehicles', 'aria-label': 'Filter vehicles', autocomplete: 'off', maxLength: '64' });
    find.oninput = () => {
      this.text = find.value.trim().toLowerCase();
      this.sort(true);
    };
    const chips = /** @type {const} */ (['watched', 'alarms']).map((name) => {
      const chip = el('button.chip', { type: 'button', 'aria-pressed': 'false' }, name === 'watched' ? '★ watch list' : 'with alarms');
      chip.onclick = () => {
        this.only[name] = !this.only[name];
        chip.setAttribute('aria-pressed', String(this.only[name]));
        this.sort(true);
      };
      return chip;
    });
    this.count = el('span.tag');
    this.heads = COLUMNS.map(([name, words, title]) => {
      const button = el('button', { type: 'button', title }, words);
      button.onclick = () => this.sortBy(name);
      return el(`span.c-${name}`, { role: 'columnheader' }, button);
    });
    const head = el('div.row.head', { role: 'row' }, el('span', { role: 'columnheader' }, el('span.hush', {}, 'watch list')), ...this.heads);
    this.scroller.append(el('div', { role: 'rowgroup' }, head), this.spacer, this.body);
    this.scroller.onscroll = () => this.place();
    this.scroller.onpointerenter = () => { this.pointed = true; };
    this.scroller.onpointerleave = () => { this.pointed = false; };
    this.pane.replaceChildren(el('h2.hush', {}, 'Fleet'), el('div.filters', { role: 'group', 'aria-label': 'Filters of vehicles' },
      el('div.chips', {}, find, ...chips, this.count)), this.scroller);
    this.headings();
  }

  /** @type {(name: SortBy) => void} */
  sortBy(name) {
    this.down = this.by === name ? !this.down : name !== 'name';
    this.by = name;
    this.headings();
    this.sort(true);
  }

  headings() {
    this.heads?.forEach((head, i) => head.setAttribute('aria-sort', COLUMNS[i][0] !== this.by ? 'none' : this.down ? 'descending' : 'ascending'));
  }

  /** Another picture is shown: the same vehicles stay where they are while somebody points at them. */
  render() {
    if (this.pane.hidden) return;
    this.sort(!(this.pointed || this.scroller.contains(document.activeElement)) || this.names !== this.app.fleet.names);
  }

  /** @type {(again: boolean) => void} */
  sort(again) {
    const { fleet, watch, marks } = this.app;
    if (!fleet.picture) return;
    this.names = fleet.names;
    const { slot } = fleet.picture.columns;
    /** @type {number[]} */
    const shown = [];
    for (let row = 0; row < fleet.rows; row++) {
      const who = fleet.who(row);
      if (!who || (this.only.watched && !watch.has(who.id)) || (this.only.alarms && !marks.has(who.id))) continue;
      if (this.text && !who.id.toLowerCase().includes(this.text) && !who.callsign.toLowerCase().includes(this.text)) continue;
      shown.push(slot[row]);
    }
    if (again) {
      this.order = this.sorted(shown);
    } else {
      const [there, known] = [new Set(shown), new Set(this.order)];
      this.order = [...this.order.filter((each) => there.has(each)), ...shown.filter((each) => !known.has(each))];
    }
    this.spacer.style.height = `${this.order.length * ROW_PX}px`;
    this.scroller.setAttribute('aria-rowcount', String(this.order.length + 1));
    if (this.count) setText(this.count, this.order.length === fleet.rows ? `${fleet.rows}` : `${this.order.length} of ${fleet.rows}`);
    this.place();
  }

  /** @type {(slots: number[]) => number[]} */
  sorted(slots) {
    const { fleet } = this.app;
    const sign = this.down ? -1 : 1;
    if (this.by === 'name') return slots.sort((p, q) => sign * (fleet.name(fleet.row(p)) < fleet.name(fleet.row(q)) ? -1 : 1));
    const column = fleet.picture?.columns[this.by];
    if (!column) return slots;
    const keys = new Map(slots.map((each) => [each, column[fleet.row(each)]]));
    // what is not known comes last, whichever way
    return slots.sort((p, q) => {
      const [a, b] = [keys.get(p) ?? NaN, keys.get(q) ?? NaN];
      return a === b || (a !== a && b !== b) ? p - q : a !== a ? 1 : b !== b ? -1 : sign * (a - b);
    });
  }

  /** Put the rows that can be seen where they belong. */
  place() {
    const first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_PX) - SPARE);
    const wanted = Math.min(this.order.length - first, Math.ceil(this.scroller.clientHeight / ROW_PX) + 2 * SPARE);
    while (this.rows.length < wanted) this.rows.push(this.make());
    this.rows.forEach((row, i) => {
      row.line.hidden = i >= wanted;
      if (i < wanted) this.fill(row, first + i);
    });
  }

  /** @type {() => TableRow} */
  make() {
    const [star, name] = [el('button.star', { type: 'button' }), el('button.name', { type: 'button' })];
    const cells = COLUMNS.slice(1).map(([column]) => el(`span.c-${column}`, { role: 'cell' }));
    const line = el('div.row', { role: 'row' }, el('span', { role: 'cell' }, star), el('span.c-name', { role: 'cell' }, name), ...cells);
    /** @type {TableRow} */
    const row = { line, star, name, cells, id: '' };
    name.onclick = () => this.app.select(row.id, { go: true });
    name.ondblclick = () => this.app.showPane('vehicle');
    star.onclick = () => {
      this.app.watch.toggle(row.id);
      this.place();
    };
    this.body.append(line);
    return row;
  }

  /** @type {(row: TableRow, place: number) => void} */
  fill(row, place) {
    const { fleet, marks, selected, watch } = this.app;
    const at = fleet.row(this.order[place]);
    if (at < 0 || !fleet.picture) return;
    const c = fleet.picture.columns;
    const aircraft = c.frame[at] === ADSB;
    row.id = fleet.id(at);
    row.line.style.transform = `translateY(${place * ROW_PX}px)`;
    row.line.setAttribute('aria-rowindex', String(place + 2));
    const rank = marks.get(row.id)?.rank ?? -1;
    row.line.dataset.severity = ['', 'advisory', 'caution', 'warning'][rank + 1];
    row.line.classList.toggle('chosen', row.id === selected);
    const watched = watch.has(row.id);
    setText(row.star, watched ? '★' : '☆');
    row.star.setAttribute('aria-pressed', String(watched));
    row.star.setAttribute('aria-label', `Keep an eye on ${fleet.name(at)}`);
    setText(row.name, fleet.name(at));
    row.name.title = row.id;
    const words = [altitude(c.alt_m[at], aircraft), speed(c.speed_mps[at], aircraft), heading(c.track_deg[at]),
      span(Math.max(0, c.age_s[at])), short(c.score[at])];
    words.forEach((word, i) => setText(row.cells[i], word));
  }
}
