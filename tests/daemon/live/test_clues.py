"""A diagnosis on the live page: the same words as in a report, no word of the machine's own, no clue left unsaid."""

from __future__ import annotations

import inspect
import re
from typing import Any

from watchkeeper.detectors.incidents import expect
from watchkeeper.detectors.incidents.by_pattern import OF_NAME
from watchkeeper.detectors.incidents.clues import FINDINGS, PATTERNS, SIGNS, TOOLS, clues, fault_at, others
from watchkeeper.detectors.incidents.declaration import likely
from watchkeeper.detectors.incidents.faults import FAULT_TYPES
from watchkeeper.detectors.incidents.tools import SYMPTOMS, Tool

EVIDENCE: list[dict[str, str]] = [
    *({"alarm": sign, "stream": stream} for sign in SIGNS for stream in ("uav-1/gps", "uav-1/imu")),
    *({"alarm": "loss", "stream": f"uav-{i}/imu"} for i in range(12)),
    *({"tool": tool, "target": "uav-1", "found": "plain"} for tool in TOOLS),
    *({"tool": "scan", "target": "uav-1/gps", "found": f"{word}gw-1~uav-1" if word[-1] == ":" else word}
      for word in FINDINGS),
    *({"pattern": name, "probability": "0.93"} for name in PATTERNS),
    {"declared": "uav-1 behind gw-1", "found": "behind gw-2"},
    # of a later version
    {"alarm": "later", "stream": "uav-1"}, {"tool": "sniff", "target": "uav-1", "found": "odd:gw-1"},
    {"unknown": "later"},
]  # fmt: skip
FAULTS = [
    {"type": fault, "location": place}
    for fault in (*FAULT_TYPES, "worn_out")
    for place in ("uav-1", "uav-1/gps", "gw-1~uav-1")
]
RIVALS = [{**fault, "confidence": p} for fault, p in zip(FAULTS, (0.34, 0.0099, 0.01, 0.0, 0.02, 0.5), strict=False)]
IN_PAGE = """async ([evidence, faults, rivals]) => {
  const { clues, faultAt, likely, others } = await import('/page/clues.js');
  const { learnKinds } = await import('/page/kinds.js');
  await learnKinds();
  return [clues(evidence), faults.map(faultAt), [0.934, 0.5, 0.9949, 0.995, 1].map(likely), others(rivals)];
}"""


def test_the_page_and_a_report_say_the_same(screen: Any) -> None:
    lines, faults, probable, rivals = screen().page.evaluate(IN_PAGE, [EVIDENCE, FAULTS, RIVALS])
    assert lines == clues(EVIDENCE)
    assert faults == [fault_at(fault) for fault in FAULTS]
    assert probable == [likely(confidence) for confidence in (0.934, 0.5, 0.9949, 0.995, 1.0)]
    assert rivals == others(RIVALS)
    assert [words.rpartition("(")[2] for words in rivals] == ["34 %)", "1 %)", "2 %)"]
    assert not [line for line in lines if "undefined" in line]


def test_everything_that_can_be_found_has_words() -> None:
    assert TOOLS.keys() == {tool.word for tool in Tool}
    assert SIGNS.keys() >= set(SYMPTOMS)
    assert PATTERNS.keys() == OF_NAME.keys()
    assert not [fault for fault in FAULT_TYPES if "_" in fault_at({"type": fault, "location": "uav-1"})]


def test_every_word_of_the_tools_is_known() -> None:
    """Words that stand in tables, and those that are written where they are found."""
    tables = {*expect._STATUS.values(), *expect._SCAN.values(), expect.PLAIN, expect.SILENT}
    of_devices = {*expect._PORT.values(), *expect._HOP.values()}
    source = inspect.getsource(expect)
    written, of_written = re.findall(r'return "([a-z]+)"', source), re.findall(r'f"([a-z-]+):\{', source)
    assert "even" in written
    assert "around" in of_written
    assert tables | set(written) <= FINDINGS.keys()
    assert {f"{word}:" for word in (*of_devices, *of_written)} <= FINDINGS.keys()
