// Elements without a framework: make one, and change only what differs.

/**
 * `el('p.note', {title: '…', hidden: true}, 'text', child)`. Names with a dash become attributes.
 * @template {string} What
 * @param {What} what
 * @param {Record<string, string | boolean>} props
 * @param {Child[]} children
 * @returns {Made<What>}
 */
export function el(what, props = {}, ...children) {
  const [tag, ...classes] = what.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  for (const [name, value] of Object.entries(props)) {
    if (name.includes('-') || name === 'role' || name === 'for') node.setAttribute(name, String(value));
    else Object.assign(node, { [name]: value });
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return /** @type {Made<What>} */ (node);
}

/**
 * The element of index.html with this id.
 * @template {string} Id
 * @param {Id} id
 * @returns {ElementOf<Id>}
 */
export function by(id) {
  const node = document.getElementById(id);
  if (!node) throw new Error(`the page has no ${id}`);
  return /** @type {ElementOf<Id>} */ (node);
}

/** What a canvas is drawn with.
 * @type {(canvas: HTMLCanvasElement) => Pen}
 */
export function penOf(canvas) {
  const pen = canvas.getContext('2d');
  if (!pen) throw new Error('the browser cannot draw');
  return pen;
}

/** @type {(node: Node, text: string) => void} */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/**
 * Severity as a shape, the same as on the map.
 * @type {(severity: Severity) => SVGSVGElement}
 */
export function shape(severity) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'shape');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `#shape-${severity}`);
  svg.append(use);
  return svg;
}

/**
 * A list of names and values; [name, value, what it means, the exact value].
 * @type {(pairs: Fact[]) => HTMLDListElement}
 */
export function facts(pairs) {
  return el('dl.facts', {}, ...pairs.map(([name, value, meaning, exact]) => el('div', {},
    el('dt', { title: meaning ?? name }, name), el('dd', { title: exact ?? '' }, value))));
}

const SAID_MS = 4000;
/** @type {number | undefined} */
let saying;

/**
 * Say how something went: for readers of the screen, and for a moment on it.
 * @type {(words: string) => void}
 */
export function announce(words) {
  const node = by('say');
  setText(node, words);
  node.classList.toggle('shown', words !== '');
  clearTimeout(saying);
  saying = setTimeout(() => node.classList.remove('shown'), SAID_MS);
}
