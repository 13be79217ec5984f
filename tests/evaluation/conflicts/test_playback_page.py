"""The page of an episode in a real browser without a network: what a person sees, clicks and types."""

from __future__ import annotations

import copy
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from axe_playwright_python.sync_playwright import Axe

from watchkeeper.benchmarks.conflict_metrics import random_trajectory
from watchkeeper.daemon.cli import main

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
PATIENCE_S = 20.0
HOSTILE = (
    "</script><script>document.title = 'taken'</script>",
    "<img src=x onerror=\"document.title='taken'\">",
    "A&amp;",
)


class Screen:
    """A page from a file, with everything that it complained about and whatever it asked for."""

    def __init__(self, browser: Any, file: Path, theme: str, size: dict[str, int]) -> None:
        self.context = browser.new_context(viewport=size, color_scheme=theme, offline=True)
        self.page = self.context.new_page()
        self.complaints: list[str] = []
        self.page.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda r: self.complaints.append(r.url) if not r.url.startswith("file:") else None)
        self.page.goto(file.as_uri())

    def __call__(self, script: str) -> Any:
        return self.page.evaluate(script)

    def see(self, script: str, what: Callable[[Any], bool] = bool) -> Any:
        end = time.monotonic() + PATIENCE_S
        while not what(found := self(script)):
            assert time.monotonic() < end, f"{script}: {found!r}"
            time.sleep(0.02)
        return found

    @property
    def step(self) -> int:
        """The step that slider, clock and cursor agree upon."""
        at = int(self("document.getElementById('slider').value"))
        assert f", step {at + 1} of " in self("document.getElementById('clock').value")
        return at

    def cursor(self) -> float:
        return float(self("document.querySelector('.cursor').getAttribute('x1')"))

    def place(self) -> str:
        """Where the aircraft are on the map."""
        return str(
            self("[...document.querySelectorAll('#map g[transform]')].map((g) => g.getAttribute('transform')).join()")
        )


@pytest.fixture(scope="module")
def episode(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """The page of simulated traffic with a conflict seen, one missed and a ghost; and its metrics and windows."""
    folder = tmp_path_factory.mktemp("episode")
    log, page, out = folder / "c.wklog", folder / "c.html", folder / "m.json"
    assert main(["simulate", "controlled", "--seed", "3", "--out", str(log)]) == 0
    assert main(["evaluate", "conflicts", str(log), "--page", str(page), "--out", str(out), "--detail", "--quiet"]) == 0
    (found,) = json.loads(out.read_text())["episodes"]
    assert (found["metrics"]["tp"], found["metrics"]["fp"], found["metrics"]["fn"]) == (1, 1, 1)
    return page, found


@pytest.fixture
def look(browser: Any) -> Iterator[Callable[..., Screen]]:
    opened: list[Screen] = []

    def start(file: Path, theme: str = "light", size: dict[str, int] = DESKTOP) -> Screen:
        opened.append(Screen(browser, file, theme, size))
        opened[-1].see("document.querySelector('.cursor')?.hasAttribute('x1')")
        return opened[-1]

    yield start
    for each in opened:
        each.context.close()
        assert each.complaints == []


def test_the_slider_moves_map_timeline_clock_and_words(look, episode):
    screen = look(episode[0])
    before = screen.step, screen.cursor(), screen.place()
    screen.page.locator("#slider").fill("12")
    assert before[0] == 0
    assert screen.step == 12
    assert screen.cursor() > before[1]
    assert screen.place() != before[2]
    assert (
        screen("document.getElementById('slider').ariaValueText ?? slider.getAttribute('aria-valuetext')")
        == "2:00, step 13 of 60"
    )


def test_a_click_on_a_window_goes_to_its_beginning(look, episode):
    screen, windows = look(episode[0]), episode[1]["windows"]
    bars = screen.page.locator(".window")
    assert bars.count() == len(windows["truth"]) + len(windows["alerts"]) == 4
    for kind, rows in (("conflict", windows["truth"]), ("alert", windows["alerts"])):
        for i, row in enumerate(rows):
            bar = screen.page.locator(f'.window[data-kind="{kind}"][data-index="{i}"]')
            bar.click()
            assert screen.step == row["start"]
            screen.page.keyboard.press("End")
            bar.focus()
            screen.page.keyboard.press("Enter")
            assert screen.step == row["start"]


def test_pointing_at_a_window_says_what_it_is_and_marks_its_partner(look, episode):
    screen, windows = look(episode[0]), episode[1]["windows"]
    matched = next(i for i, row in enumerate(windows["truth"]) if row["alert"] is not None)
    screen.page.locator(f'.window[data-kind="conflict"][data-index="{matched}"]').hover()
    assert screen.page.locator(".window.lit").count() == 2
    assert f"Alert {windows['truth'][matched]['alert'] + 1} answers it" in screen.page.locator("#hint").inner_text()
    missed = next(i for i, row in enumerate(windows["truth"]) if row["alert"] is None)
    screen.page.locator(f'.window[data-kind="conflict"][data-index="{missed}"]').hover()
    assert screen.page.locator(".window.lit").count() == 1
    assert "No alert answers it." in screen.page.locator("#hint").inner_text()


def test_a_click_beside_the_windows_goes_to_that_time(look, episode):
    screen = look(episode[0])
    chart = screen.page.locator("#timeline svg")
    middle = chart.bounding_box()["width"] / 2.0
    chart.click(position={"x": middle, "y": 200})
    assert screen.cursor() == pytest.approx(middle, abs=1.0)
    assert 24 <= screen.step <= 34


def test_the_keyboard_plays_steps_and_jumps(look, episode):
    screen, last = look(episode[0]), episode[1]["steps_total"] - 1
    press = screen.page.keyboard.press
    press("ArrowRight")
    press("ArrowRight")
    assert screen.step == 2
    press("Shift+ArrowRight")
    assert screen.step == 12
    press("ArrowLeft")
    assert screen.step == 11
    press("End")
    press("ArrowRight")
    assert screen.step == last
    press("Home")
    assert screen.step == 0
    starts = sorted({row["start"] for rows in episode[1]["windows"].values() for row in rows})
    for start in [at for at in starts if at > 0]:
        press("n")
        assert screen.step == start
    press("p")
    assert screen.step == starts[-2]
    # a focused slider moves by one step too, not by two
    screen.page.locator("#slider").focus()
    press("ArrowRight")
    assert screen.step == starts[-2] + 1


def test_space_plays_and_pauses_and_the_end_is_the_end(look, episode):
    screen, last = look(episode[0]), episode[1]["steps_total"] - 1
    screen.page.locator("#speed").select_option("300")
    screen.page.locator("body").press(" ")
    assert screen.page.locator("#play").inner_text() == "Pause"
    moved = screen.see("Number(document.getElementById('slider').value)", lambda step: step > 1)
    screen.page.locator("body").press(" ")
    assert screen.page.locator("#play").inner_text() == "Play"
    held = screen.step
    assert moved <= held < last
    time.sleep(0.2)
    assert screen.step == held
    screen.page.locator("#play").click()
    screen.see("Number(document.getElementById('slider').value)", lambda step: step == last)
    screen.see("document.getElementById('play').textContent", lambda word: word == "Play")
    screen.page.locator("#play").click()
    screen.see("Number(document.getElementById('slider').value)", lambda step: step < last)


def test_figures_are_those_of_the_json_to_every_digit(look, episode):
    screen, metrics = look(episode[0]), episode[1]["metrics"]
    shown = screen("[...document.querySelectorAll('#metrics data')].map((d) => [d.dataset.metric, d.value])")
    assert {name: float(value) if value else None for name, value in shown} == metrics
    cells = screen("""[...document.querySelectorAll('#confusion td[data-cell]')].map(
      (cell) => [cell.dataset.cell, cell.querySelector('data').textContent, cell.querySelectorAll('button').length])""")
    assert cells == [["tp", "1", 1], ["fn", "1", 1], ["fp", "1", 1], ["tn", str(metrics["tn"]), 0]]
    screen.page.locator('#confusion td[data-cell="fn"] button').click()
    missed = next(row for row in episode[1]["windows"]["truth"] if row["alert"] is None)
    assert screen.step == missed["start"]


def test_the_map_shows_conflicts_where_there_are_some(look, episode):
    screen, steps = look(episode[0]), episode[1]["steps"]
    for k, conflict in enumerate(steps["conflict"]):
        screen.page.locator("#slider").fill(str(k))
        lines = screen.page.locator("#map .pass.conflict").count()
        assert (lines > 0) == conflict, k
        assert (screen.page.locator("#map .zone[data-tone=lost]").count() > 0) == steps["los"][k], k
        rings = screen("[...document.querySelectorAll('#map .commanded')].filter((r) => r.style.display === '').length")
        assert rings == len(steps["deliberate"][k]), k


def test_the_map_zooms_and_shows_everything_again(look, episode):
    screen = look(episode[0])
    whole = screen.place()
    screen.page.locator("#zoom-in").click()
    assert screen.place() != whole
    screen.page.keyboard.press("f")
    assert screen.place() == whole


def test_names_are_text_whatever_they_hold(look, tmp_path):
    trajectory = copy.deepcopy(random_trajectory(4, 30, 3))
    new = dict(zip(("A1", "A2", "A3"), HOSTILE, strict=True))
    for part in ("positions", "actions"):
        trajectory[part] = [{new[name]: value for name, value in step.items()} for step in trajectory[part]]
    for part in ("agents", "waypoints"):
        trajectory[part] = {new[name]: value for name, value in trajectory[part].items()}
    path, page = tmp_path / "<b>&'.json", tmp_path / "page.html"
    path.write_bytes(msgspec.json.encode(trajectory))
    assert main(["evaluate", "conflicts", str(path), "--page", str(page)]) == 0
    screen = look(page)
    assert screen.page.title() == "<b>&'.json" == screen.page.locator("h1").inner_text()
    assert tuple(screen("[...document.querySelectorAll('.craft-name')].map((n) => n.textContent)")) == HOSTILE
    assert screen.page.locator("img, b script").count() == 0
    assert screen.page.locator("script").count() == 2


def test_axe_finds_nothing_in_any_theme_or_size(look, episode):
    for theme in ("light", "dark"):
        for size in (DESKTOP, PHONE):
            screen = look(episode[0], theme, size)
            screen("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            screen.page.locator(".window").first.click()
            found = Axe().run(screen.page).response["violations"]
            assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found] == [], (theme, size)
            # nothing is wider than the screen
            assert screen("document.documentElement.scrollWidth <= innerWidth"), (theme, size)
