// Tables that sort by any column: a press on its head, a second press the other way round.

/** @type {(row: Element, column: number) => string | number} */
function keyOf(row, column) {
  const cell = /** @type {HTMLTableCellElement | undefined} */ (row.children[column]);
  const key = cell?.dataset.v ?? cell?.textContent?.trim() ?? '';
  const number = Number(key);
  return key !== '' && !Number.isNaN(number) ? number : key === 'inf' ? Infinity : key;
}

/** @type {(a: string | number, b: string | number) => number} */
function order(a, b) {
  if (typeof a === 'number' && typeof b === 'number') return a - b || 0;
  return String(a).localeCompare(String(b), undefined, { numeric: true });
}

/** Make every table that says so sortable. */
export function sortTables() {
  for (const table of document.querySelectorAll('table[data-sortable]')) {
    const heads = [...table.querySelectorAll('thead th')];
    const body = table.querySelector('tbody');
    heads.forEach((head, column) => {
      const button = head.querySelector('button');
      if (!button || !body) return;
      button.onclick = () => {
        const down = head.getAttribute('aria-sort') === 'ascending';
        for (const other of heads) other.removeAttribute('aria-sort');
        head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
        const rows = [...body.children];
        rows.sort((a, b) => order(keyOf(a, column), keyOf(b, column)) * (down ? -1 : 1));
        body.append(...rows);
      };
    });
  }
}
