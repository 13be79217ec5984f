// The document that the page carries (daemon/report/data.py), and its columns as numbers.

const ABSENT = 65535;
const STEPS = 65534;

/** @type {ReportData} */
export const report = JSON.parse(document.getElementById('data')?.textContent ?? '{}');

/** @type {(text: string) => Uint16Array} */
function numbers(text) {
  const bytes = atob(text);
  const found = new Uint16Array(bytes.length / 2);
  for (let i = 0; i < found.length; i++) found[i] = bytes.charCodeAt(2 * i) | bytes.charCodeAt(2 * i + 1) << 8;
  return found;
}

/** @type {(text: string, min: number, max: number) => Float64Array} */
function unpacked(text, min, max) {
  const found = Float64Array.from(numbers(text));
  for (let i = 0; i < found.length; i++) found[i] = found[i] === ABSENT ? NaN : min + found[i] * (max - min) / STEPS;
  return found;
}

/** @type {WeakMap<Line, Unpacked>} */
const lines = new WeakMap();

/**
 * The lowest and the highest value of each bin of a line.
 * @type {(line: Line) => Unpacked}
 */
export function valuesOf(line) {
  let found = lines.get(line);
  if (!found) {
    const lo = unpacked(line.lo, line.min, line.max);
    found = { lo, hi: line.hi ? unpacked(line.hi, line.min, line.max) : lo };
    lines.set(line, found);
  }
  return found;
}

/** @type {WeakMap<Track, Path>} */
const paths = new WeakMap();

/**
 * Times and positions of a track, in metres.
 * @type {(track: Track) => Path}
 */
export function pathOf(track) {
  let found = paths.get(track);
  if (!found) {
    const [x0, x1, y0, y1] = track.box;
    const t = Float64Array.from(numbers(track.i), (i) => track.t + i * track.w);
    found = { t, x: unpacked(track.x, x0, x1), y: unpacked(track.y, y0, y1) };
    paths.set(track, found);
  }
  return found;
}

/**
 * The last place of a sorted column whose value is not above t; -1 before the first.
 * @type {(column: Float64Array, t: number) => number}
 */
export function placeOf(column, t) {
  let [low, high] = [0, column.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] <= t) low = middle + 1; else high = middle;
  }
  return low - 1;
}
