// The last minutes of pictures, in one block of memory that is reserved once: it never grows.

import { decode } from './wire.js';

// Five minutes of 2,000 vehicles; of a larger fleet less.
const BYTES = 24 * 1024 * 1024;
const PICTURES = 300;

export class History {
  constructor(bytes = BYTES, pictures = PICTURES) {
    this.memory = new Uint8Array(bytes);
    this.limit = pictures;
    /** @type {{t: number, at: number, length: number, rate: number}[]} oldest first */
    this.entries = [];
    this.end = 0;
  }

  /**
   * Keep a picture; the oldest make room. One of the same moment as the last replaces it.
   * @type {(buffer: ArrayBuffer, picture: Picture) => void}
   */
  add(buffer, picture) {
    const { length } = this.entries;
    if (picture.t === null || buffer.byteLength > this.memory.length) return;
    if (length && picture.t < this.entries[length - 1].t) this.clear();
    if (length && this.entries[length - 1]?.t === picture.t) return;
    if (this.end + buffer.byteLength > this.memory.length) this.end = 0;
    const from = this.end;
    const to = from + buffer.byteLength;
    while (this.entries.length && (this.entries.length >= this.limit || this.covers(from, to))) this.entries.shift();
    this.memory.set(new Uint8Array(buffer), from);
    this.entries.push({ t: picture.t, at: from, length: buffer.byteLength, rate: picture.figures.messages_per_s });
    this.end = Math.ceil(to / 8) * 8;
  }

  /** @type {(from: number, to: number) => boolean} */
  covers(from, to) {
    const oldest = this.entries[0];
    return oldest.at < to && oldest.at + oldest.length > from;
  }

  clear() {
    this.entries.length = 0;
    this.end = 0;
  }

  get first() { return this.entries.length ? this.entries[0].t : NaN; }
  get last() { return this.entries.length ? this.entries[this.entries.length - 1].t : NaN; }

  /**
   * The place in `entries` of the last picture at or before t; the first if there is none.
   * @type {(t: number) => number}
   */
  find(t) {
    let low = 0;
    let high = this.entries.length - 1;
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (this.entries[middle].t <= t) low = middle; else high = middle - 1;
    }
    return low;
  }

  /**
   * A picture on the shared memory: to be read at once, for it may be overwritten by the next `add`.
   * @type {(index: number) => Picture}
   */
  peek(index) {
    return decode(this.memory.buffer, this.entries[index].at);
  }

  /**
   * A picture to keep.
   * @type {(index: number) => Picture}
   */
  copy(index) {
    const { at, length } = this.entries[index];
    return decode(this.memory.buffer.slice(at, at + length));
  }

  /**
   * One vehicle through all pictures: calls back with (t, picture, row). Rows are in the order of slots.
   * @type {(slot: number, visit: (t: number, columns: Columns, row: number) => void) => void}
   */
  follow(slot, visit) {
    for (let i = 0; i < this.entries.length; i++) {
      const picture = this.peek(i);
      const row = rowOf(picture.columns.slot, slot);
      if (row >= 0) visit(this.entries[i].t, picture.columns, row);
    }
  }
}

/**
 * Binary search in a sorted column; -1 when it is not there.
 * @type {(slots: Uint32Array, slot: number) => number}
 */
export function rowOf(slots, slot) {
  let low = 0;
  let high = slots.length - 1;
  while (low <= high) {
    const middle = (low + high) >> 1;
    if (slots[middle] === slot) return middle;
    if (slots[middle] < slot) low = middle + 1; else high = middle - 1;
  }
  return -1;
}
