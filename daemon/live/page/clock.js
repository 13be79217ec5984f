// The clock of the stream between two pictures, at whatever speed it runs.

// How much of a new reading of the clock is believed at once: the rest follows, so that nothing jerks.
const TRUST = 0.25;
const JUMP_S = 2;

/** The stream's time by the wall clock, whatever its speed. */
export class StreamClock {
  constructor() {
    this.rate = 1;
    this.t = NaN;
    /** @type {{ t: number, now: number } | null} */
    this.seen = null;
    /** @type {number | null} */
    this.at = null;
  }

  /**
   * A picture says that the newest sample is of time t.
   * @type {(t: number | null, now?: number) => void}
   */
  read(t, now = performance.now()) {
    if (t === null) return;
    const guess = this.now(now);
    if (this.seen && now > this.seen.now + 100) {
      const rate = (t - this.seen.t) / ((now - this.seen.now) / 1000);
      this.rate += (Math.max(0, Math.min(200, rate)) - this.rate) * (Math.abs(rate - this.rate) > 0.5 ? 1 : 0.2);
    }
    this.seen = { t, now };
    this.t = Math.abs(t - guess) < JUMP_S * Math.max(1, this.rate) ? guess + (t - guess) * TRUST : t;
    this.at = now;
  }

  /** @type {(now?: number) => number} */
  now(now = performance.now()) {
    // no prediction reaches further than two pictures
    return this.t + this.rate * Math.min(2.5, (now - (this.at ?? now)) / 1000);
  }
}
