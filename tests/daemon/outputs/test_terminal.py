"""What people see: log lines and alarm lines, one per event, whatever a vehicle calls itself and whoever reads."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import time

import msgspec
from rich.console import Console

from watchkeeper.config.schema import Log
from watchkeeper.daemon import logs
from watchkeeper.daemon.logs import kv
from watchkeeper.daemon.outputs.terminal import QUEUE_LINES, AlarmLines, folded, line_of
from watchkeeper.detectors.alarms.events import CLEARED, RAISED, AlarmEvent


def event(state: str = RAISED, subjects: tuple[str, ...] = ("a", "b"), t: float = 1_700_000_000.0) -> AlarmEvent:
    return AlarmEvent(
        id="0123456789abcdef", kind="conflict", state=state, severity="warning", subjects=subjects, t=t, t_onset=t,
        t_raised=t, t_cleared=None, score=2.0, threshold=1.0,
        evidence={"tcpa_s": 61.5, "causes": ["close"], "dcpa_nm": None},
    )  # fmt: skip


def test_text_logs_are_one_line_per_event_that_nobody_can_forge() -> None:
    out = io.StringIO()
    logs.set_up(Log(), out)
    logging.getLogger("watchkeeper.x").info("from\n%s", "a\r\nb", extra=kv(name="two words", empty="", rate=0.1 + 0.2))
    logging.getLogger("watchkeeper.x").debug("not shown")
    [line] = out.getvalue().splitlines()
    assert line.split(" ", 1)[1].split() == [
        "info", "from\\na\\r\\nb", 'name="two', 'words"', 'empty=""', "rate=0.3", "logger=x",
    ]  # fmt: skip


def test_json_logs_are_json_with_the_traceback_inside() -> None:
    out = io.StringIO()
    logs.set_up(Log(format="json", level="debug"), out)
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("watchkeeper.x").exception("failed", extra=kv(port=1883, error=OSError("gone")))
    [line] = out.getvalue().splitlines()
    told = json.loads(line)
    assert (told["level"], told["message"], told["port"], told["error"]) == ("error", "failed", 1883, "gone")
    assert "ValueError: broken" in told["traceback"]
    assert told["time"].endswith("Z")


def test_setting_up_again_replaces_the_settings() -> None:
    first, second = io.StringIO(), io.StringIO()
    logs.set_up(Log(), first)
    logs.set_up(Log(level="error"), second)
    logging.getLogger("watchkeeper.x").info("quiet now")
    assert first.getvalue() + second.getvalue() == ""


def test_an_alarm_is_one_plain_line_in_a_pipe() -> None:
    out = io.StringIO()
    lines = AlarmLines(out)
    for each in (event(), event(CLEARED), event(t=12.5)):
        lines.put(each)
    asyncio.run(lines.flush())
    raised, cleared, simulated = out.getvalue().splitlines()
    assert raised.split()[:7] == ["22:13:20.0Z", "RAISED", "warning", "conflict", "a", "and", "b:"]
    assert "since 22:13:20" in raised
    assert "score 2 of 1, tcpa 61.5 s" in raised
    assert "CLEARED" in cleared
    assert simulated.startswith("t=12.5 s")
    assert "\x1b" not in out.getvalue()


def test_colours_only_on_a_terminal() -> None:
    out = io.StringIO()
    Console(file=out, force_terminal=True, color_system="standard").print(line_of(event()))
    assert "\x1b[" in out.getvalue()


def test_a_vehicle_cannot_write_to_the_terminal_by_its_name() -> None:
    text = line_of(event(subjects=("\x1b[2Jevil\n", "[red]b[/red]"))).plain
    assert "\x1b" not in text
    assert "\n" not in text
    assert "[red]b[/red]" in text


def test_a_reader_who_stopped_reading_holds_nobody_up() -> None:
    read_end, write_end = os.pipe()
    lines = AlarmLines(os.fdopen(write_end, "w"))
    began = time.monotonic()
    for _ in range(2 * QUEUE_LINES):
        lines.put(event())
    assert time.monotonic() - began < 5.0
    assert lines.dropped > 0
    os.close(read_end)


def test_a_reader_who_has_gone_is_said_and_every_line_is_counted() -> None:
    read_end, write_end = os.pipe()
    lines = AlarmLines(os.fdopen(write_end, "w"))
    os.close(read_end)
    for _ in range(100):
        lines.put(event())
    asyncio.run(lines.flush())
    assert "nobody reads" in lines.health()[0]
    assert lines.delivered + lines.dropped == 100


def test_the_responsible_numbers_come_first_with_their_units() -> None:
    evidence = {"causes": ["drift"], "jump_sigma": 0.3, "velocity_sigma": 4.1, "drift_sigma": 9.3, "noise_sigma": None}
    line = line_of(msgspec.structs.replace(event(), kind="gps_imu", subjects=("a",), evidence=evidence)).plain
    assert "[score 2 of 1, drift 9.3 sigma, velocity 4.1 sigma, jump 0.3 sigma]" in line


def test_a_diagnosis_is_told_in_the_line() -> None:
    found = {
        "type": "imu_fault",
        "location": "wing-4\x1b[2J/imu",
        "confidence": 0.965,
        "evidence": [],
        "alternatives": [],
    }
    line = line_of(msgspec.structs.replace(event(), diagnosis=found)).plain
    assert "most likely a fault of the IMU of wing-4" in line
    assert "(96 %)" in line
    assert "\x1b" not in line


def test_symptoms_stand_below_their_incident_and_count_with_it() -> None:
    base = event()
    incident = msgspec.structs.replace(base, id="i", kind="incident", t_raised=20.0)
    symptoms = [msgspec.structs.replace(base, id=name, incident="i", t_raised=10.0) for name in ("a", "b")]
    alone = msgspec.structs.replace(base, id="z", t_raised=15.0)
    assert [each.id for each in folded([*symptoms, alone, incident])] == ["z", "i", "a", "b"]
    # one whose incident is not there any more stands alone
    assert [each.id for each in folded([symptoms[0], alone])] == ["a", "z"]
    assert "   a and b" in line_of(symptoms[0]).plain


def test_an_incident_is_no_measurement_and_has_no_score() -> None:
    incident = msgspec.structs.replace(event(), kind="incident", evidence={"alarms": ["x"]})
    assert "score" not in line_of(incident).plain
    assert "score 2 of 1" in line_of(event()).plain
