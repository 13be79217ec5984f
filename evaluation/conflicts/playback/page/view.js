// What part of the chart is on the screen: nautical miles to pixels and back.

const CLOSEST = 40;

export class View {
  constructor() {
    this.width = 1;
    this.height = 1;
    this.east = 0;
    this.north = 0;
    /** Pixels per mile, and the same where everything is on the screen. */
    this.scale = 1;
    this.fitted = 1;
  }

  /** @type {(east: number) => number} */
  x(east) { return this.width / 2 + (east - this.east) * this.scale; }

  /** @type {(north: number) => number} */
  y(north) { return this.height / 2 - (north - this.north) * this.scale; }

  get zoomed() { return this.scale > this.fitted * 1.01; }

  /**
   * Everything on the screen, with `margin` pixels around it.
   * @type {(box: [west: number, south: number, east: number, north: number], margin: number) => void}
   */
  fit([west, south, east, north], margin) {
    this.east = (west + east) / 2;
    this.north = (south + north) / 2;
    const wide = (this.width - 2 * margin) / Math.max(1, east - west);
    const high = (this.height - 2 * margin) / Math.max(1, north - south);
    this.scale = this.fitted = Math.max(1e-3, Math.min(wide, high));
  }

  /**
   * This box on the screen, no larger than zooming allows.
   * @type {(box: [west: number, south: number, east: number, north: number]) => void}
   */
  show(box) {
    const { fitted } = this;
    this.fit(box, 0);
    this.scale = Math.max(fitted, Math.min(fitted * CLOSEST, this.scale));
    this.fitted = fitted;
  }

  /**
   * Larger by a factor; the place at pixel x, y stays where it is.
   * @type {(factor: number, x?: number, y?: number) => void}
   */
  zoom(factor, x = this.width / 2, y = this.height / 2) {
    const scale = Math.max(this.fitted, Math.min(this.fitted * CLOSEST, this.scale * factor));
    const moved = 1 / this.scale - 1 / scale;
    this.east += (x - this.width / 2) * moved;
    this.north -= (y - this.height / 2) * moved;
    this.scale = scale;
  }

  /** @type {(x: number, y: number) => void} */
  pan(x, y) {
    this.east -= x / this.scale;
    this.north += y / this.scale;
  }
}
