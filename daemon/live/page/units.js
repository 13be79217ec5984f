// Numbers for people. Everything arrives in SI; here it gets the units of its readers.

export const NM_M = 1852;
const FT_M = 0.3048;
const KT_MPS = 1852 / 3600;
// Event times below this are seconds of a simulation, not dates.
const UNIX_FROM_S = 1e9;

/** @type {'auto' | 'aviation' | 'metric'} auto: aircraft in feet and knots, everybody else in metres */
let system = 'auto';

/** @type {(wanted: string) => void} */
export function setUnits(wanted) {
  system = wanted === 'aviation' || wanted === 'metric' ? wanted : 'auto';
}

/** @type {(aircraft: boolean) => boolean} */
const inFeet = (aircraft) => (system === 'auto' ? aircraft : system === 'aviation');

/** @type {(x: number | null | undefined) => x is number} */
export const known = (x) => x !== null && x !== undefined && Number.isFinite(x);

/**
 * `12:03:20Z` of a Unix time, `t=12.5 s` of a simulation's.
 * @type {(t: number | null | undefined) => string}
 */
export function clock(t) {
  if (!known(t)) return '–';
  if (t < UNIX_FROM_S) return `t=${t.toFixed(1)} s`;
  return `${new Date(t * 1000).toISOString().slice(11, 19)}Z`;
}

/**
 * Seconds as somebody would say them: `8 s`, `3 min`, `2 h`.
 * @type {(s: number | null | undefined) => string}
 */
export function span(s) {
  if (!known(s)) return '–';
  const a = Math.abs(s);
  if (a < 99.5) return `${Math.round(s)} s`;
  if (a < 5940) return `${Math.round(s / 60)} min`;
  return `${(s / 3600).toFixed(1)} h`;
}

/**
 * About three digits, without noise.
 * @type {(x: number | null | undefined) => string}
 */
export function short(x) {
  if (!known(x)) return '–';
  const a = Math.abs(x);
  if (a >= 1e6) return `${(x / 1e6).toFixed(1)}M`;
  if (a >= 1e4) return `${(x / 1e3).toFixed(a >= 1e5 ? 0 : 1)}k`;
  if (a >= 100) return x.toFixed(0);
  if (a >= 10) return x.toFixed(1);
  return a === 0 ? '0' : x.toFixed(2);
}

/** A count: no digits behind the point.
 * @type {(n: number) => string}
 */
export const tally = (n) => (known(n) && Math.abs(n) < 1e4 ? n.toFixed(0) : short(n));

/**
 * Altitude in flight levels or feet, or in metres.
 * @type {(m: number, aircraft: boolean) => string}
 */
export function altitude(m, aircraft) {
  if (!known(m)) return '–';
  if (!inFeet(aircraft)) return `${m.toFixed(0)} m`;
  const ft = m / FT_M;
  return ft >= 10000 ? `FL${Math.round(ft / 100)}` : `${Math.round(ft / 25) * 25} ft`;
}

/** @type {(mps: number, aircraft: boolean) => string} */
export function speed(mps, aircraft) {
  if (!known(mps)) return '–';
  return inFeet(aircraft) ? `${(mps / KT_MPS).toFixed(0)} kt` : `${mps.toFixed(1)} m/s`;
}

/** @type {(mps: number, aircraft: boolean) => string} */
export function climb(mps, aircraft) {
  if (!known(mps)) return '–';
  if (!inFeet(aircraft)) return `${mps.toFixed(1)} m/s`;
  const fpm = Math.round(mps / FT_M * 60 / 50) * 50;
  return fpm === 0 ? 'level' : `${fpm > 0 ? '+' : '−'}${Math.abs(fpm)} fpm`;
}

/** @type {(deg: number) => string} */
export const heading = (deg) => (known(deg) ? `${String(Math.round(deg) % 360).padStart(3, '0')}°` : '–');

/** @type {(ms: number) => string} */
export function duration_ms(ms) {
  return known(ms) ? (ms >= 100 ? `${ms.toFixed(0)} ms` : `${ms.toFixed(1)} ms`) : '–';
}

/**
 * `latency_excess_s` as words and a unit: ['latency excess', 's'].
 * @type {(name: string) => [words: string, unit: string]}
 */
export function label(name) {
  /** @type {Record<string, string>} */
  const units = { s: 's', nm: 'NM', ft: 'ft', m: 'm', kt: 'kt', fpm: 'fpm', km: 'km', km2: 'km²', mps: 'm/s', mps2: 'm/s²', sigma: '' };
  const at = name.lastIndexOf('_');
  const tail = name.slice(at + 1);
  if (at > 0 && tail in units) return [name.slice(0, at).replaceAll('_', ' '), units[tail]];
  return [name.replaceAll('_', ' '), ''];
}
