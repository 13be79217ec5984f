// Alarms with one cause: the incident comes first, what it explains is folded under it. The rule is that of
// detectors/incidents/fold.py: an alarm is a symptom where its event names an incident that is among the same rows.

/**
 * Of alarms that an incident among these explains, the incident's id by that of the alarm.
 * @type {(rows: AlarmRow[]) => Map<string, string>}
 */
export function symptoms(rows) {
  /** @type {Map<string, string>} */
  const found = new Map();
  const there = new Set(rows.map(({ alarm }) => alarm.id));
  for (const { alarm: { id, event } } of rows) if (event.incident && there.has(event.incident)) found.set(id, event.incident);
  return found;
}

/**
 * Rows in the order of a list: after each incident what it explains, if that is unfolded. Incidents come before others of
 * their rank, and as severe as the worst of what they explain.
 * @type {(rows: AlarmRow[], unfolded: Set<string>) => Folded[]}
 */
export function folded(rows, unfolded) {
  const of = symptoms(rows);
  /** @type {Map<string, AlarmRow[]>} */
  const below = new Map();
  /** @type {AlarmRow[]} */
  const tops = [];
  for (const row of rows) {
    const incident = of.get(row.alarm.id);
    if (incident !== undefined) below.set(incident, [...(below.get(incident) ?? []), row]);
    else tops.push(row);
  }
  /** @type {(row: AlarmRow) => string} */
  const place = ({ alarm, state, rank }) => (state === 'cleared' ? 'cleared' : `${Boolean(alarm.shelved)}|${Boolean(alarm.ack)}|${rank}`);
  /** @type {(row: AlarmRow) => number} */
  const last = (row) => Number(row.state === 'cleared' || !below.has(row.alarm.id));
  // the places come in order: what is alike is sorted among itself
  const places = [...new Set(tops.map(place))];
  return places.flatMap((each) => tops.filter((row) => place(row) === each).sort((p, q) => last(p) - last(q))).flatMap((row) => {
    const under = below.get(row.alarm.id) ?? [];
    /** @type {Folded[]} */
    const list = [{ row, explains: under.length, under: false }];
    if (unfolded.has(row.alarm.id)) list.push(...under.map((each) => ({ row: each, explains: 0, under: true })));
    return list;
  });
}
