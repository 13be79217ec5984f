// The map: redraws the vehicles with every frame that moves something, and the ground under them when it must.

import { BaseMap } from './basemap.js';
import { penOf } from './dom.js';
import { EARTH } from './fleet.js';
import { drawGround } from './ground.js';
import { Labels } from './labels.js';
import { drawPairs, drawTexts } from './pairs.js';
import { onTheme, palette } from './palette.js';
import { Range } from './range.js';
import { areasOf, trailOf } from './scene.js';
import { Symbols } from './symbols.js';
import { boundsOf, drawMarks, drawSymbols, HOLLOW_S } from './vehicles.js';
import { View } from './view.js';

// The ground is redrawn at most this often while the view moves; in between it is only shifted.
const GROUND_MS = 110;
// A movement of less than this many pixels is nothing to redraw for.
const NOTICEABLE_PX = 0.3;
const calm = matchMedia('(prefers-reduced-motion: reduce)');

export class MapView {
  // drawn again for the screen's resolution and theme, see restyle
  ratio = 1;
  symbols = new Symbols(1);
  labels = new Labels(1);
  marked = false;
  fastest = 0;
  drawnFor = NaN;
  drawnVersion = -1;

  /**
   * @param {HTMLCanvasElement} ground
   * @param {HTMLCanvasElement} air
   * @param {App} app
   */
  constructor(ground, air, app) {
    this.ground = ground;
    this.air = air;
    this.app = app;
    /** @type {Record<World, View>} */
    this.views = { earth: new View(true), local: new View(false) };
    /** @type {World} */
    this.world = EARTH;
    /** @type {Spots} */
    this.spots = { x: new Float32Array(0), y: new Float32Array(0), order: [] };
    this.rank = new Int8Array(0);
    this.open = new Uint8Array(0);
    // first_ms: from the request of the page to the first vehicle on it
    this.stats = { frames: 0, draws: 0, draw_ms: 0, ground_ms: 0, first_ms: 0 };
    // until the user moves the map it keeps everybody in sight by itself
    /** @type {Record<World, boolean>} */
    this.auto = { earth: true, local: true };
    /** @type {Box} */
    this.box = [0, 0, 0, 0];
    this.drawnAt = 0;
    this.base = new BaseMap(() => { this.groundStale = true; });
    this.range = new Range();
    this.stale = this.groundStale = true;
    /** @type {{ x: number, y: number, scale: number, at: number, world: World | null }} */
    this.under = { x: 0, y: 0, scale: 1, at: 0, world: null };
    new ResizeObserver(() => this.resize()).observe(air);
    onTheme(() => this.restyle());
    this.resize();
    requestAnimationFrame((now) => this.frame(now));
  }

  get view() { return this.views[this.world]; }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.air;
    this.ratio = Math.min(devicePixelRatio || 1, 2);
    for (const canvas of [this.ground, this.air]) {
      canvas.width = Math.round(width * this.ratio);
      canvas.height = Math.round(height * this.ratio);
    }
    for (const view of Object.values(this.views)) view.resize(width, height);
    this.restyle();
  }

  restyle() {
    this.symbols = new Symbols(this.ratio);
    this.labels = new Labels(this.ratio);
    this.stale = this.groundStale = true;
  }

  /** Another picture is shown, or alarms have changed: who is marked how. */
  refresh() {
    const { fleet } = this.app;
    if (!fleet.picture) return;
    if (this.rank.length < fleet.rows) {
      const room = 2 * fleet.rows;
      [this.rank, this.open] = [new Int8Array(room), new Uint8Array(room)];
      this.spots = { x: new Float32Array(room), y: new Float32Array(room), order: [] };
    }
    this.rank.fill(-1);
    this.open.fill(0);
    for (const [id, { rank, open }] of this.app.marks) {
      const row = fleet.rowOfId(id);
      if (row >= 0) [this.rank[row], this.open[row]] = [rank, open ? 1 : 0];
    }
    this.marked = this.app.marks.size > 0;
    let fastest = 0;
    for (let i = 0; i < fleet.rows; i++) fastest = Math.max(fastest, Math.abs(fleet.vx[i]) + Math.abs(fleet.vy[i]));
    this.fastest = fastest;
    // a moment of the past is looked at from where the map is, unless it is nowhere yet
    const nowhere = this.box[0] === this.box[2];
    if (this.auto[this.world] && fleet.count[this.world] && (nowhere || this.app.shownTime() === undefined)) this.keepInSight();
    this.stale = this.groundStale = true;
  }

  /** @type {(world: World) => void} */
  switchTo(world) {
    this.world = world;
    this.refresh();
  }

  /** Show everybody, and from now on see to it that it stays so. */
  fit() {
    this.auto[this.world] = true;
    const box = boundsOf(this.app.fleet, this.world, this.view.round);
    if (!box) return;
    this.box = box;
    this.view.fit(box);
  }

  /** Fit again when somebody has left the view, or most of it has become empty. */
  keepInSight() {
    const box = boundsOf(this.app.fleet, this.world, this.view.round);
    if (!box) return;
    const { view, box: old } = this;
    const outside = view.px(box[0]) < 20 || view.px(box[2]) > view.width - 20 || view.py(box[3]) < 20 || view.py(box[1]) > view.height - 70;
    const shrunk = box[2] - box[0] < 0.6 * (old[2] - old[0]) && box[3] - box[1] < 0.6 * (old[3] - old[1]);
    if (!outside && !shrunk && !view.move) return;
    const at_once = old[0] === old[2];
    this.box = box;
    view.fit(box, { at_once });
  }

  /** The user takes the map over. */
  taken() {
    this.auto[this.world] = false;
    this.app.address.changed(false);
  }

  /**
   * Bring these vehicles into the middle, closer if there are two of them.
   * @type {(ids: string[]) => boolean}
   */
  goTo(ids) {
    const { fleet } = this.app;
    const rows = ids.map((id) => fleet.rowOfId(id)).filter((row) => row >= 0);
    if (!rows.length) return false;
    this.app.showWorld(fleet.worldOf(rows[0]));
    this.taken();
    const [xs, ys] = [rows.map((r) => fleet.x(r, this.app.now())), rows.map((r) => fleet.y(r, this.app.now()))];
    if (rows.length === 1) {
      this.view.go(xs[0], ys[0], Math.max(this.view.scale, this.world === EARTH ? 0.0025 : 0.8));
    } else {
      this.view.fit([Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)], { margin: 150, most: 0.006 });
    }
    return true;
  }

  /** @type {(now: number) => void} */
  frame(now) {
    requestAnimationFrame((next) => this.frame(next));
    this.stats.frames++;
    const { app, view } = this;
    view.step(now);
    const t = app.now();
    if (app.following && app.fleet.picture) {
      const row = app.fleet.rowOfId(app.selected);
      if (row >= 0 && app.fleet.worldOf(row) === this.world && !view.move) view.set(app.fleet.x(row, t), app.fleet.y(row, t), view.scale);
    }
    this.moveGround(now);
    const moved = this.fastest * view.scale * Math.abs(t - this.drawnFor) >= NOTICEABLE_PX;
    const pulsing = this.marked && !calm.matches && now - this.drawnAt > 60;
    if (!(this.stale || moved || pulsing || view.version !== this.drawnVersion)) return;
    [this.stale, this.drawnAt, this.drawnFor, this.drawnVersion] = [false, now, t, view.version];
    const began = performance.now();
    this.drawAir(now, t);
    this.stats.draws++;
    this.stats.draw_ms += performance.now() - began;
    if (!this.stats.first_ms && app.fleet.rows) this.stats.first_ms = performance.now();
  }

  /** @type {(now: number) => void} */
  moveGround(now) {
    const { under, view } = this;
    const same = under.x === view.x && under.y === view.y && under.scale === view.scale && under.world === this.world;
    if (!same || this.groundStale) {
      if (now - under.at >= GROUND_MS || under.world !== this.world) {
        const began = performance.now();
        Object.assign(under, { x: view.x, y: view.y, scale: view.scale, at: now, world: this.world });
        const pen = penOf(this.ground);
        pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
        drawGround(pen, view, this.world, this.base, trailOf(this.app), areasOf(this.app.rows()));
        this.app.shelves.draw(pen, view, this.world);
        if (this.app.prefs.kept.range) this.range.draw(pen, view, this.world);
        this.ground.style.transform = '';
        this.groundStale = false;
        this.stats.ground_ms += performance.now() - began;
        return;
      }
    }
    if (same) return;
    const k = view.scale / under.scale;
    const dx = view.width / 2 * (1 - k) + view.east(under.x) * view.scale;
    const dy = view.height / 2 * (1 - k) - (under.y - view.y) * view.scale;
    this.ground.style.transformOrigin = '0 0';
    this.ground.style.transform = `translate(${dx}px, ${dy}px) scale(${k})`;
  }

  /** @type {(now: number, t: number) => void} */
  drawAir(now, t) {
    const { app, view, spots } = this;
    const { fleet } = app;
    const pen = penOf(this.air);
    pen.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    pen.imageSmoothingEnabled = false;
    pen.clearRect(0, 0, view.width, view.height);
    app.area.paint(pen, view, this.world);
    if (!fleet.picture) return;
    const selected = fleet.rowOfId(app.selected);
    this.place(t);
    const texts = this.world === EARTH ? drawPairs(pen, view, fleet, t, app.rankOfPair, app.chosenSubjects()) : [];
    if (this.marked) drawMarks(pen, this, now);
    drawSymbols(pen, this, t);
    if (selected >= 0 && fleet.worldOf(selected) === this.world) {
      pen.strokeStyle = palette.accent;
      pen.lineWidth = 2;
      pen.beginPath();
      pen.arc(spots.x[selected], spots.y[selected], 16, 0, 2 * Math.PI);
      pen.stroke();
    }
    const boxes = drawTexts(pen, texts);
    if (this.labels.due(now, `${view.version}/${fleet.picture.t}/${app.selected}/${this.world}`)) {
      this.order(selected);
      /** @type {(row: number) => string} */
      const tone = (row) => (row === selected ? palette.accent : fleet.silence(row, t) > HOLLOW_S ? palette.muted : palette.text);
      /** @type {(row: number) => boolean} */
      const framed = (row) => row === selected || this.rank[row] >= 0;
      this.labels.place(view, fleet, spots, [...boxes, ...this.covered()], framed, tone);
    }
    this.labels.draw(pen, spots);
  }

  /**
   * Boxes where controls or the scale would hide a label.
   * @type {() => Box[]}
   */
  covered() {
    const { left: x, top: y } = this.air.getBoundingClientRect();
    const hiding = document.querySelectorAll('.map .find, .map .segment, .map .stack, .map .legend, .map .timeline');
    /** @type {Box[]} */
    const boxes = [...hiding].map((node) => {
      const { left, top, width, height } = node.getBoundingClientRect();
      return [left - x, top - y, width, height];
    });
    return [...boxes, [this.view.width - 190, this.view.height - 96, 190, 26]];
  }

  /**
   * Where everybody is on the screen at time t.
   * @type {(t: number) => void}
   */
  place(t) {
    const { fleet } = this.app;
    const { x, y } = this.spots;
    const mine = this.world === EARTH ? 0 : 1;
    const { view } = this;
    for (let i = 0; i < fleet.rows; i++) {
      if (fleet.world[i] !== mine) {
        x[i] = -1e6;
        continue;
      }
      const s = fleet.ahead(i, t);
      x[i] = view.px(fleet.wx[i] + fleet.vx[i] * s);
      y[i] = view.py(fleet.wy[i] + fleet.vy[i] * s);
    }
  }

  /** @type {(row: number) => boolean} */
  inside(row) {
    const { x, y } = this.spots;
    return x[row] > -12 && x[row] < this.view.width + 12 && y[row] > -12 && y[row] < this.view.height + 12;
  }

  /**
   * Who should have a label first: the selected, then by severity, then by place in the fleet.
   * @type {(selected: number) => void}
   */
  order(selected) {
    const { fleet } = this.app;
    const { order } = this.spots;
    order.length = 0;
    if (selected >= 0 && this.inside(selected)) order.push(selected);
    for (let rank = 2; rank >= -1; rank--) {
      if (rank >= 0 && !this.marked) continue;
      for (let i = 0; i < fleet.rows; i++) if (this.rank[i] === rank && i !== selected && this.inside(i)) order.push(i);
    }
  }

  /**
   * The vehicle nearest to this pixel, within reach of a finger; '' for none.
   * @type {(px: number, py: number) => string}
   */
  pick(px, py) {
    const { fleet } = this.app;
    let [best, near] = [-1, 22 * 22];
    for (let i = 0; i < fleet.rows; i++) {
      const d = (this.spots.x[i] - px) ** 2 + (this.spots.y[i] - py) ** 2;
      if (d < near) [best, near] = [i, d];
    }
    return best < 0 ? '' : fleet.id(best);
  }
}
