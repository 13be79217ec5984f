"""What is out of sight on the live page says how bad it is: panes that are not open, the other map."""

from __future__ import annotations

from typing import Any

from live_screen import PHONE

BADGE = """async () => {
  const { NetworkPane } = await import('/page/network.js');
  const { by } = await import('/page/dom.js');
  const row = (severity) => ({ alarm: { event: { kind: 'incident' } }, state: 'raised', severity });
  const shown = (rows) => (new NetworkPane({ rows: () => rows }), by('incidents').dataset.severity);
  return [shown([row('advisory')]), shown([row('caution'), row('advisory')]), shown([row('warning')])];
}"""


def test_the_number_of_incidents_has_the_colour_of_the_worst(screen: Any) -> None:
    """It was red for three advisories, next to a blue number of alarms."""
    assert screen().page.evaluate(BADGE) == ["advisory", "caution", "warning"]


WORLDS = """async () => {
  const { markWorlds } = await import('/page/controls.js');
  const fleet = { rowOfId: (id) => ({ jet: 0, quad: 1, wing: 2 })[id] ?? -1, world: [0, 1, 1] };
  const shown = (marks) => {
    markWorlds({ fleet, marks: new Map(marks.map(([id, rank]) => [id, { rank, open: true }])) });
    return [...document.querySelectorAll('#worlds button')].map(({ dataset }) => [dataset.world, dataset.severity]);
  };
  return [shown([]), shown([['quad', 0], ['wing', 2], ['gone', 2]]), shown([['jet', 1], ['quad', 0]])];
}"""


def test_the_other_map_says_that_there_is_an_alarm_on_it(screen: Any) -> None:
    """Three drones in a local frame had alarms, and the map of the Earth looked as if all were well."""
    none, drones, both = map(dict, screen().page.evaluate(WORLDS))
    assert none == {"earth": "", "local": ""}
    assert drones == {"earth": "", "local": "warning"}
    assert both == {"earth": "caution", "local": "advisory"}


CUT = """() => {
  watchkeeper.showPane('fleet');
  const row = document.createElement('div');
  row.className = 'row';
  for (const text of ['', 'N102UC', '17900 ft', '1234 kt', '359°', '59 min', '123']) {
    const cell = document.createElement('span');
    cell.textContent = text;
    row.append(cell);
  }
  document.getElementById('pane-fleet').append(row);
  return [...row.children].filter((cell) => cell.scrollWidth > cell.clientWidth).map((cell) => cell.textContent);
}"""


def test_no_figure_of_the_fleet_is_cut_off_on_a_phone(screen: Any) -> None:
    """An age of 15 min was "15 …"."""
    assert screen(size=PHONE).page.evaluate(CUT) == []
