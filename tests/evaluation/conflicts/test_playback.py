"""What the page and the animation of an episode show, without a browser: scene, content, files, and what is refused."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from watchkeeper.benchmarks.conflict_metrics import random_trajectory
from watchkeeper.daemon.cli import main
from watchkeeper.evaluation.conflicts.detector import HallucinationDetector
from watchkeeper.evaluation.conflicts.episode import from_trajectory
from watchkeeper.evaluation.conflicts.findings import Findings, details
from watchkeeper.evaluation.conflicts.playback.animation import MOST_FRAMES, shown_steps
from watchkeeper.evaluation.conflicts.playback.approaches import approaches
from watchkeeper.evaluation.conflicts.playback.chart import chart_of
from watchkeeper.evaluation.conflicts.playback.content import content
from watchkeeper.evaluation.conflicts.playback.pages import SCRIPTS, embedded, page_of
from watchkeeper.evaluation.conflicts.playback.scene import scene_of
from watchkeeper.streams.geo import NM_M, inverse_many

from where import ROOT

MEGABYTE = 1_000_000


def examined(seed: int, steps: int = 60, agents: int = 6, **setting: Any) -> Findings:
    detector = HallucinationDetector(**setting)
    return detector.examine(from_trajectory(random_trajectory(seed, steps, agents), detector.action_period_s))


def in_page(page: str) -> dict[str, Any]:
    """The data of a page, as a browser would read them."""
    found = re.search(r'<script type="application/json" id="episode">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


# -- what is drawn -----------------------------------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.sampled_from(("midpoint", "first")))
@settings(max_examples=20)
def test_the_passes_that_are_drawn_are_those_of_the_metrics(seed, plane):
    found = examined(seed, 40, 5, tangent_plane=plane)
    rows = approaches(found)
    conflicts = rows[rows["conflict"]]
    assert set(conflicts["step"].tolist()) == set(np.flatnonzero(found.series.conflict).tolist())
    for k in np.flatnonzero(found.series.conflict):
        nearest = conflicts[conflicts["step"] == k][0]
        assert nearest["dcpa_m"] / NM_M == pytest.approx(found.series.dcpa_nm[k], abs=1e-9)
        assert {nearest["a"], nearest["b"]} == set(found.series.pair[k].tolist())


@given(st.floats(-80.0, 80.0), st.floats(-180.0, 360.0), st.floats(0.0, 360.0), st.floats(1.0, 30.0))
def test_a_mile_is_a_mile_and_a_bearing_a_bearing_on_the_chart(lat, lon, bearing, miles):
    east_deg = miles / 60.0 * np.sin(np.radians(bearing)) / np.cos(np.radians(lat))
    lats, lons = np.array([lat, lat + miles / 60.0 * np.cos(np.radians(bearing))]), np.array([lon, lon + east_deg])
    chart = chart_of(lats, lons)
    x, y = chart.place(lats, lons)
    metres, azimuth, _ = inverse_many(lats[:1], lons[:1], lats[1:], lons[1:])
    # a sphere for an ellipsoid: half a percent, and at high latitudes the miles of a long leg differ from end to end
    assert np.hypot(x[1] - x[0], y[1] - y[0]) == pytest.approx(metres[0] / NM_M, rel=0.02)
    turned = (np.degrees(np.arctan2(x[1] - x[0], y[1] - y[0])) - azimuth[0] + 180.0) % 360.0 - 180.0
    assert abs(turned) < 1.5


def test_both_sides_of_the_antimeridian_are_next_to_each_other():
    lat, lon = np.array([0.0, 0.0, np.nan]), np.array([179.9, -179.8, np.nan])
    x, _ = chart_of(lat, lon).place(lat, lon)
    assert x[:2] == pytest.approx([-9.0, 9.0])
    assert np.isnan(x[2])


def test_windows_are_those_of_the_detail_with_times_names_and_partners():
    found = examined(4, 150, 10)
    scene, plain = scene_of(found), details(found)["windows"]
    assert [(w.start, w.end, w.partner, w.iou) for w in scene.conflicts] == [
        (w["start"], w["end"], w["alert"], w["iou"]) for w in plain["truth"]
    ]
    assert [(w.start, w.end, w.partner) for w in scene.alerts] == [
        (w["start"], w["end"], w["truth"]) for w in plain["alerts"]
    ]
    verdicts = [w.verdict for w in (*scene.conflicts, *scene.alerts)]
    counts = {word: verdicts.count(word) for word in ("matched", "missed", "ghost")}
    assert counts == {"matched": 2 * found.matching.tp, "missed": found.matching.fn, "ghost": found.matching.fp}
    leads = [w.lead_s for w in scene.conflicts if w.lead_s is not None]
    assert np.mean(leads or [0.0]) == pytest.approx(found.metrics["avg_lead_time_s"])
    assert all(w.end_s - w.start_s == pytest.approx((w.end - w.start) * 10.0) for w in scene.conflicts)


def test_the_page_holds_the_metrics_digit_by_digit_and_is_small():
    found = examined(1, 150, 10)
    page = page_of(found, "one")
    assert len(page.encode()) < MEGABYTE
    shown = in_page(page)["metrics"]
    assert shown == msgspec.json.decode(msgspec.json.encode(found.metrics))
    assert page == page_of(found, "one")


@pytest.mark.parametrize("positions", [[], [{}], [{"A": (1.0, 2.0)}], [{"A": (1.0, 2.0)}, {}, {"B": (1.0, 2.0)}]])
def test_episodes_of_hardly_anything_have_a_page(positions):
    found = HallucinationDetector().examine(from_trajectory({"positions": positions}, 10.0))
    assert in_page(page_of(found, "little"))["metrics"]["tp"] == 0


# -- names from strangers ----------------------------------------------------------------------------------------------


@given(st.text())
def test_no_name_ends_the_element_that_holds_the_data(name):
    text = embedded({"name": name, "</script>": "<!--<script>"})
    assert not set("<>&") & set(text)
    assert json.loads(text)["name"] == name.encode("utf-8", "replace").decode() or "\ud800" <= max(name) <= "\udfff"


def test_every_script_is_in_the_page_after_those_that_it_imports():
    folder = ROOT / "evaluation" / "conflicts" / "playback" / "page"
    assert set(SCRIPTS) == {path.name for path in folder.glob("*.js")}
    for i, name in enumerate(SCRIPTS):
        assert set(re.findall(r"from '\./([\w.]+)'", (folder / name).read_text())) <= set(SCRIPTS[:i])


def test_a_page_is_one_file_that_loads_nothing_and_runs_only_its_own_script():
    page = page_of(examined(2), "</title><script>alert(1)</script>{{data}}")
    assert page.count("<script") == 2
    assert not re.findall(r"""(?:src|href|action|data)\s*=\s*["']?(?:http|/|data:)|@import|url\((?!#)""", page)
    policy = unescape(re.search(r'Content-Security-Policy" content="([^"]*)"', page)[1])
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert "<title>&lt;/title&gt;&lt;script&gt;alert(1)&lt;/script&gt;{{data}}</title>" in page


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    """Three files of the same name; the last holds two episodes."""
    paths = []
    for seed in range(3):
        path = tmp_path / f"run{seed}" / "an episode.json"
        path.parent.mkdir()
        one = random_trajectory(seed, 30, 4)
        path.write_bytes(msgspec.json.encode([one, random_trajectory(9, 30, 4)] if seed == 2 else one))
        paths.append(str(path))
    return paths


def test_a_page_for_each_episode_and_the_report_leads_to_them(tmp_path, files):
    report, folder = tmp_path / "report" / "all.html", tmp_path / "the pages"
    report.parent.mkdir()
    out = tmp_path / "m.json"
    assert (
        main(["evaluate", "conflicts", *files, "--report", str(report), "--page", str(folder), "--out", str(out)]) == 0
    )
    links = re.findall(r'<a href="([^"]+)">([^<]+)</a>', report.read_text())
    assert [words for _, words in links] == ["an episode.json"] * 2 + ["an episode.json#0", "an episode.json#1"]
    pages = [report.parent / unquote(unescape(link)) for link, _ in links]
    assert len({page.resolve() for page in pages}) == 4 == len(list(folder.iterdir()))
    for page, episode in zip(pages, json.loads(out.read_text())["episodes"], strict=True):
        assert in_page(page.read_text())["metrics"] == episode["metrics"]


def test_one_page_for_several_episodes_is_refused_before_the_work(tmp_path, files, capsys):
    page = tmp_path / "page.html"
    assert main(["evaluate", "conflicts", *files, "--page", str(page)]) == 1
    assert "a page shows one episode and there are 3; name a folder" in capsys.readouterr().err
    assert main(["evaluate", "conflicts", files[2], "--page", str(page)]) == 1
    assert "there are 2" in capsys.readouterr().err
    assert not page.exists()
    assert main(["evaluate", "conflicts", files[0], "--page", str(page)]) == 0
    assert in_page(page.read_text())["name"] == "an episode.json"


def test_content_has_a_place_for_everybody_at_every_step():
    found = examined(3, 25, 4)
    made = content(scene_of(found), "x")
    assert [len(craft["east"]) for craft in made["aircraft"]] == [25] * 4
    assert all(len(made[name]) == 25 for name in ("t_s", "conflict", "alert", "lost", "separation_nm", "dcpa_nm"))
    assert all(craft["waypoints"][0][0] == 0 and len(craft["waypoints"]) == 1 for craft in made["aircraft"])


# -- animations --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["gif", "webp", "apng"])
def test_an_animation_has_a_frame_per_step(tmp_path, ending, capsys):
    path, film = tmp_path / "e.json", tmp_path / f"e.{ending}"
    path.write_bytes(msgspec.json.encode(random_trajectory(1, 12, 3)))
    assert main(["evaluate", "conflicts", str(path), "--animation", str(film)]) == 0
    assert f"{film}: e.json, 12 frames" in capsys.readouterr().err
    with Image.open(film) as shown:
        shown.load()
        assert (shown.n_frames, shown.size, shown.info["duration"]) == (12, (960, 720), 100)


def test_long_episodes_skip_steps():
    assert list(shown_steps(4)) == [0, 1, 2, 3]
    for steps in (MOST_FRAMES, MOST_FRAMES + 1, 3601):
        assert MOST_FRAMES / 2 <= len(shown_steps(steps)) <= MOST_FRAMES


def test_of_several_episodes_the_one_that_went_worst_is_animated(tmp_path, capsys):
    path = tmp_path / "many.json"
    still = {"positions": [{"A": (50.0, 8.0), "B": (51.0, 9.0)}] * 5}
    close = {"positions": [{"A": (50.0, 8.0), "B": (50.0, 8.01)}] * 5}
    path.write_bytes(msgspec.json.encode([still, close, still]))
    assert main(["evaluate", "conflicts", str(path), "--animation", str(tmp_path / "m.gif")]) == 0
    assert "m.gif: many.json#1, 5 frames" in capsys.readouterr().err


def test_a_video_without_ffmpeg_is_refused_before_the_work(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["evaluate", "conflicts", "no-such.json", "--animation", str(tmp_path / "e.mp4")]) == 1
    assert "needs ffmpeg, which is not installed" in capsys.readouterr().err


def test_what_ffmpeg_says_is_said(tmp_path, monkeypatch, capsys):
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho 'Unknown encoder libx264' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    path = tmp_path / "e.json"
    path.write_bytes(msgspec.json.encode(random_trajectory(1, 5, 3)))
    assert main(["evaluate", "conflicts", str(path), "--animation", str(tmp_path / "e.mp4")]) == 1
    assert "ffmpeg failed: Unknown encoder libx264" in capsys.readouterr().err


def test_an_unknown_ending_is_a_usage_error(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["evaluate", "conflicts", "e.json", "--animation", "e.avi"])
    assert stop.value.code == 2
    assert "expected a name that ends in .gif" in capsys.readouterr().err
