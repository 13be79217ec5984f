// Elements without a framework: make one, and change only what differs.

/** `el('p.note', {title: '…', onclick: …}, 'text', child)`. Names with a dash become attributes. */
export function el(what, props = {}, ...children) {
  const [tag, ...classes] = what.split('.');
  const node = document.createElement(tag);
  if (classes.length) node.className = classes.join(' ');
  for (const [name, value] of Object.entries(props)) {
    if (name.includes('-') || name === 'role' || name === 'for') node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

export const by = (id) => document.getElementById(id);

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

/** Severity as a shape, the same as on the map. */
export function shape(severity) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('class', 'shape');
  svg.setAttribute('aria-hidden', 'true');
  const use = document.createElementNS('http://www.w3.org/2000/svg', 'use');
  use.setAttribute('href', `#shape-${severity}`);
  svg.append(use);
  return svg;
}

/** A list of names and values. */
export function facts(pairs) {
  return el('dl.facts', {}, ...pairs.map(([name, value]) => el('div', {}, el('dt', { title: name }, name), el('dd', {}, value))));
}
