// Alarms with one cause: the incident comes first, what it explains is folded under it.

/**
 * Of alarms that an incident explains, the incident's id by that of the alarm, while the incident goes on.
 * @type {(rows: AlarmRow[]) => Map<string, string>}
 */
export function symptoms(rows) {
  /** @type {Map<string, string>} */
  const found = new Map();
  const open = new Set(rows.filter(({ alarm, state }) => alarm.event.kind === 'incident' && state !== 'cleared').map(({ alarm }) => alarm.id));
  for (const { alarm: { id, event } } of rows) {
    if (event.incident && open.has(event.incident)) found.set(id, event.incident);
    if (!open.has(id)) continue;
    for (const explained of event.evidence.alarms ?? []) found.set(String(explained), id);
  }
  return found;
}

/**
 * Rows in the order of a list: after each incident what it explains, if that is unfolded. Incidents come before others of
 * their rank, and as severe as the worst of what they explain.
 * @type {(rows: AlarmRow[], unfolded: Set<string>) => Folded[]}
 */
export function folded(rows, unfolded) {
  const of = symptoms(rows);
  const there = new Set(rows.map(({ alarm }) => alarm.id));
  /** @type {Map<string, AlarmRow[]>} */
  const below = new Map();
  /** @type {AlarmRow[]} */
  const tops = [];
  for (const row of rows) {
    const incident = of.get(row.alarm.id);
    if (incident !== undefined && there.has(incident)) below.set(incident, [...(below.get(incident) ?? []), row]);
    else tops.push(row);
  }
  const incidents = tops.filter(({ alarm }) => below.has(alarm.id));
  const others = tops.filter(({ alarm }) => !below.has(alarm.id));
  return [...incidents, ...others].flatMap((row) => {
    const under = below.get(row.alarm.id) ?? [];
    /** @type {Folded[]} */
    const list = [{ row, explains: under.length, under: false }];
    if (unfolded.has(row.alarm.id)) list.push(...under.map((each) => ({ row: each, explains: 0, under: true })));
    return list;
  });
}
