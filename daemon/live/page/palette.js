// The theme: which one, and its colours as the canvases need them.

const NAMES = ['ground', 'surface', 'raised', 'line', 'line-strong', 'text', 'muted', 'accent', 'warning', 'caution',
  'advisory', 'good', 'grid', 'grid-text', 'halo', 'alt-0', 'alt-1', 'alt-2', 'unknown', 'land', 'coast', 'border'];
const KEY = 'watchkeeper-theme';
const dark = matchMedia('(prefers-color-scheme: dark)');
/** @type {(() => void)[]} */
const listeners = [];

/** Colours by name, those of theme.css. Replaced as a whole when the theme changes.
 * @type {Record<string, string>}
 */
export let palette = {};
export const fonts = { text: 'sans-serif', mono: 'monospace' };

function stored() {
  try { return localStorage.getItem(KEY); } catch { return null; }
}

function apply() {
  document.documentElement.dataset.theme = stored() ?? (dark.matches ? 'dark' : 'light');
  const style = getComputedStyle(document.documentElement);
  palette = Object.fromEntries(NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
  fonts.text = style.getPropertyValue('--font');
  fonts.mono = style.getPropertyValue('--mono');
  for (const listener of listeners) listener();
}

/** @type {(listener: () => void) => void} */
export function onTheme(listener) {
  listeners.push(listener);
}

/** The other theme, from now on and at the next visit. */
export function toggleTheme() {
  const next = document.documentElement.dataset.theme === 'dark' ? 'light' : 'dark';
  try { localStorage.setItem(KEY, next); } catch { /* a browser that keeps nothing changes it for this visit only */ }
  document.documentElement.dataset.theme = next;
  apply();
}

/**
 * A colour between two, `#rrggbb` each.
 * @type {(a: string, b: string, part: number) => string}
 */
export function mix(a, b, part) {
  /** @type {(colour: string, i: number) => number} */
  const channel = (c, i) => parseInt(c.slice(1 + 2 * i, 3 + 2 * i), 16);
  const mixed = [0, 1, 2].map((i) => Math.round(channel(a, i) + (channel(b, i) - channel(a, i)) * part));
  return `rgb(${mixed.join(' ')})`;
}

dark.addEventListener('change', apply);
apply();
