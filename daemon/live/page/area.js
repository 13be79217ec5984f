// Shelve an area: drag a circle on the map, or take the one of an alarm; then say which alarms, for how long and why.

import { tell, whyNot } from './api.js';
import { announce, by, el, setText } from './dom.js';
import { EARTH, latOf, lonOf, stretch } from './fleet.js';
import { kindNames } from './kinds.js';
import { circle, distance } from './shelves.js';
import { NM_M } from './units.js';

// Smaller than this many pixels is a slip of the hand, not an area.
const LEAST_PX = 8;

export class AreaTool {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    /** Whether the next drag on the map is a circle. */
    this.on = false;
    /** @type {Circle | null} */
    this.area = null;
    /** @type {HTMLFormElement} */
    this.form = by('area-form');
    const button = by('area');
    // with the keyboard there is nothing to drag: the middle of the map, and numbers to change it
    button.onclick = ({ detail }) => (detail ? this.draw(!this.on) : this.ask(this.middle(), ''));
    by('area-cancel').onclick = () => by('area-dialog').close();
    by('area-dialog').onclose = () => this.draw(false);
    this.form.onsubmit = (event) => {
      event.preventDefault();
      void this.put();
    };
  }

  /** @type {(on: boolean) => void} */
  draw(on) {
    this.on = on;
    this.area = null;
    by('area').setAttribute('aria-pressed', String(on));
    by('air').classList.toggle('drawing', on);
    this.app.map.stale = true;
    if (on) announce('Drag on the map from the middle of the area outwards');
  }

  /** @type {() => Circle} */
  middle() {
    const { view } = this.app.map;
    return { lat: latOf(view.y), lon: wrapped(lonOf(view.x)), radius_m: Math.min(view.width, view.height) / 4 / view.scale / stretch(view.y) };
  }

  /**
   * The circle from one pixel to another, shown while it is dragged.
   * @type {(from: Point, to: Point, done: boolean) => void}
   */
  drag(from, to, done) {
    const { map } = this.app;
    const { view } = map;
    const px = Math.hypot(to[0] - from[0], to[1] - from[1]);
    const y = view.worldY(from[1]);
    this.area = { lat: latOf(y), lon: wrapped(lonOf(view.worldX(from[0]))), radius_m: px / view.scale / stretch(y) };
    map.stale = true;
    if (!done) return;
    if (px < LEAST_PX) this.draw(false);
    else this.ask(this.area, '');
  }

  /**
   * Ask about this circle; `kind` is the kind that is meant, '' for all.
   * @type {(area: Circle, kind: string) => void}
   */
  ask(area, kind) {
    this.app.showWorld(EARTH);
    this.area = area;
    const names = kindNames();
    by('area-kind').replaceChildren(el('option', { value: '' }, 'all alarms in it'), ...names.map((name) => el('option', { value: name }, name.replaceAll('_', ' '))));
    by('area-kind').value = names.includes(kind) ? kind : '';
    by('area-lat').value = area.lat.toFixed(4);
    by('area-lon').value = area.lon.toFixed(4);
    by('area-radius').value = (area.radius_m / NM_M).toPrecision(3);
    setText(by('area-problem'), '');
    by('area-dialog').showModal();
  }

  async put() {
    const [lat, lon, nm] = [by('area-lat'), by('area-lon'), by('area-radius')].map((input) => Number(input.value));
    const asked = { minutes: Number(by('area-minutes').value), reason: by('area-reason').value, kind: by('area-kind').value || null, area: { lat, lon, radius_m: nm * NM_M } };
    try {
      await tell('/shelves', asked);
    } catch (error) {
      setText(by('area-problem'), whyNot(error));
      return;
    }
    by('area-dialog').close();
    announce(`shelved within ${distance(nm * NM_M)}`);
    await this.app.shelves.refresh();
    this.app.past.again();
  }

  /** @type {(pen: Pen, view: View, world: World) => void} */
  paint(pen, view, world) {
    if (this.area && world === EARTH) circle(pen, view, this.area, distance(this.area.radius_m));
  }
}

/** @type {(lon: number) => number} */
const wrapped = (lon) => lon - 360 * Math.round(lon / 360);
