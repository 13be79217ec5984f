"""Two aircraft published by hand with mosquitto_pub, a report every five seconds: one alarm, with the exact answer."""

from __future__ import annotations

import json
import shutil
import subprocess
from typing import Any

import pytest
from geographiclib.geodesic import Geodesic

KT_MS = 1852.0 / 3600.0
T0 = 1_700_000_000
GS_KT = 450.0


def publish(port: int, topic: str, message: dict[str, Any]) -> None:
    tool = shutil.which("mosquitto_pub")
    if tool is None:
        pytest.skip("mosquitto_pub is not installed")
    subprocess.run([tool, "-p", str(port), "-q", "1", "-t", topic, "-m", json.dumps(message)], check=True)


class Meeting:
    """Two aircraft on one geodesic, each flying at the other, 40 NM apart at T0."""

    def __init__(self) -> None:
        self.line = Geodesic.WGS84.Line(50.0, 8.0, 77.0)
        self.length_m = 40 * 1852.0

    def report(self, name: str, t: float) -> dict[str, float]:
        flown = GS_KT * KT_MS * (t - T0)
        at = self.line.Position(flown if name == "a1" else self.length_m - flown)
        track = at["azi2"] if name == "a1" else at["azi2"] + 180.0
        return {
            "t": t, "lat": at["lat2"], "lon": at["lon2"], "alt_ft": 35000, "gs_kt": GS_KT, "trk_deg": track % 360.0,
            "vs_fpm": 0,
        }  # fmt: skip

    def tcpa_s(self, t: float) -> float:
        return self.length_m / (2 * GS_KT * KT_MS) - (t - T0)


def test_two_json_aircraft_head_on_raise_exactly_one_conflict_with_the_exact_answer(
    broker: Any, listener: Any, configure: Any, wait_for: Any, tmp_path: Any, daemon: Any
) -> None:
    config = tmp_path / "wk.toml"
    config.write_text(
        f'[broker]\nurl = "{broker.url}"\nclient_id = "by-hand"\n[http]\nport = 0\n'
        f'[sinks]\nstate_dir = "{tmp_path / "state"}"\n[time]\nidle_timeout_s = 3600.0\n'
    )
    process = daemon(config)
    wait_for(lambda: "connected to the broker" in process.log)
    meeting = Meeting()
    for t in range(T0, T0 + 75, 5):
        for name in ("a1", "b2"):
            publish(broker.port, f"telemetry/adsb/{name}", meeting.report(name, float(t)))
    wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "conflict"])
    process.end()
    listener.catch_up()
    raised = [a for a in listener.alarms("raised") if a["kind"] == "conflict"]
    topics = {t for t, p, _ in listener.messages if t.startswith("watchkeeper/alarm/conflict/") and p}
    assert len(raised) == 1
    assert topics == {"watchkeeper/alarm/conflict/a1~b2"}
    (alarm,) = raised
    # five reports of each in a row, so not before the fifth
    assert alarm["t"] >= T0 + 20
    assert alarm["evidence"]["tcpa_s"] == pytest.approx(meeting.tcpa_s(alarm["t"]), abs=0.1)
    assert alarm["evidence"]["dcpa_m"] == pytest.approx(0.0, abs=5.0)
