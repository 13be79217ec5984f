// The moment that is shown: play, pause, speed, and jumps. Times are seconds since the first step.

// Times faster than it was flown.
const SPEEDS = [1, 2, 5, 10, 20, 30, 60, 120, 300];
// At its first speed an episode takes about this long.
const WHOLE_S = 30;

export class Player {
  /** @param {EpisodeData} data */
  constructor(data) {
    this.times = data.t_s;
    this.last = Math.max(0, this.times.length - 1);
    this.t = 0;
    this.step = 0;
    this.playing = false;
    const wanted = (this.times[this.last] ?? 0) / WHOLE_S;
    this.speeds = SPEEDS;
    this.speed = SPEEDS.find((speed) => speed >= wanted) ?? SPEEDS[SPEEDS.length - 1];
    /** @type {(() => void)[]} */
    this.listeners = [];
    // people who want less motion see step after step, not what lies between
    this.smooth = !matchMedia('(prefers-reduced-motion: reduce)').matches;
    this.before = 0;
  }

  /** How far on the way to the next step, 0 to 1. */
  get part() {
    if (!this.smooth || this.step >= this.last) return 0;
    return (this.t - this.times[this.step]) / (this.times[this.step + 1] - this.times[this.step]);
  }

  /** @type {(listener: () => void) => void} */
  onChange(listener) {
    this.listeners.push(listener);
  }

  /** @type {(step: number) => void} */
  goTo(step) {
    this.show(this.times[Math.max(0, Math.min(this.last, step))] ?? 0);
  }

  /** @type {(t: number) => void} */
  show(t) {
    this.t = Math.max(0, Math.min(this.times[this.last] ?? 0, t));
    this.step = this.stepAt(this.t);
    for (const listener of this.listeners) listener();
  }

  /**
   * The last step that has begun by then.
   * @type {(t: number) => number}
   */
  stepAt(t) {
    let low = 0;
    let high = this.last;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.times[middle] <= t) low = middle; else high = middle - 1;
    }
    return low;
  }

  toggle() {
    if (this.playing) {
      this.pause();
      return;
    }
    if (this.step >= this.last) this.show(0);
    this.playing = true;
    this.before = performance.now();
    requestAnimationFrame((now) => this.frame(now));
    this.show(this.t);
  }

  pause() {
    this.playing = false;
    this.show(this.t);
  }

  /** @type {(now: number) => void} */
  frame(now) {
    if (!this.playing) return;
    // a tab that was hidden goes on where it was left
    const passed = Math.min(0.25, Math.max(0, now - this.before) / 1000);
    this.before = now;
    const t = this.t + passed * this.speed;
    if (t >= this.times[this.last]) {
      this.t = t;
      this.pause();
      return;
    }
    this.show(t);
    requestAnimationFrame((next) => this.frame(next));
  }
}
