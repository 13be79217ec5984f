"""A report in a real browser that has no network: what it shows, what it lets be done, and what it does not let run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe

from watchkeeper.daemon.cli import main
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.logs.wklog import LogWriter
from watchkeeper.streams.simulate import simulate

DESKTOP, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
EVIL = '</script><img src=x onerror="hacked=1">'
LIMIT_BYTES = 3_000_000


def hostile(batch: Batch) -> Batch:
    """The same samples of vehicles that call themselves HTML."""
    ids = [f"{EVIL}{i}" for i, _ in enumerate(batch.ids)]
    callsigns = {name: f"<svg onload=hacked=1>{i}" for i, name in enumerate(ids) if i < 2}
    return Batch(ids, batch.kinds, batch.vias, callsigns)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two reports of one minute with a conflict, spoofed drones and a stream that stops; and the alarms of one."""
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, change in (("plain", lambda batch: batch), ("hostile", hostile)):
        with LogWriter(folder / f"{name}.wklog") as writer:
            for batch in simulate("demo", seconds=70, seed=1).batches():
                writer.write(change(batch))
        made[name] = folder / f"{name}.html"
        words = ["--alarms", str(folder / f"{name}.jsonl"), "--report", str(made[name])]
        assert main(["replay", str(folder / f"{name}.wklog"), *words]) == 0
    return made


@pytest.fixture
def opened(browser: Any) -> Iterator[Callable[..., Any]]:
    """`opened(path)`: the page, from the disk, without a network; it asks for nothing and complains of nothing."""
    contexts, complaints = [], []

    def start(path: Path, theme: str = "dark", size: dict[str, int] = DESKTOP) -> Any:
        context = browser.new_context(viewport=size, color_scheme=theme, offline=True, reduced_motion="reduce")
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda r: complaints.append(r.url) if r.url != path.as_uri() else None)
        page.goto(path.as_uri())
        page.wait_for_timeout(150)
        return page

    start.complaints = complaints  # type: ignore[attr-defined]
    yield start
    for context in contexts:
        context.close()
    assert complaints == []


def alarms_of(page: Path) -> dict[str, list[dict[str, Any]]]:
    lives: dict[str, list[dict[str, Any]]] = {}
    for line in page.with_suffix(".jsonl").read_text().splitlines():
        event = json.loads(line)
        lives.setdefault(event["id"], []).append(event)
    return lives


def test_the_numbers_on_the_page_are_those_of_the_alarm_file(pages: dict[str, Path], opened: Any) -> None:
    page = opened(pages["plain"])
    lives = alarms_of(pages["plain"])
    assert len(lives) >= 3
    shown = page.eval_on_selector_all("article.alarm", "cards => cards.map((card) => card.dataset.id)")
    assert sorted(shown) == sorted(lives)
    compared = 0
    for identity, life in lives.items():
        rows = page.eval_on_selector_all(
            f"#alarm-{identity} > details.evidence tbody tr",
            "rows => rows.map((r) => [...r.children].map((c) => c.textContent))",
        )
        numbers = {name: value for name, value, *_ in rows}
        if life[0]["kind"] == "incident":
            continue
        moments = [moment_of(event) for event in life]
        assert any(all(moment.get(name) == value for name, value in numbers.items()) for moment in moments), identity
        compared += len(numbers)
    assert compared >= 20


def moment_of(event: dict[str, Any]) -> dict[str, str]:
    """The figures of an event as a page writes them: the same digits, without zeros at the end."""
    worst = event.get("worst") or event
    figures = {"score": worst["score"], **worst["evidence"]}
    written = {}
    for name, value in figures.items():
        label = name.removesuffix("_sigma").replace("_", " ")
        if isinstance(value, bool | int | float):
            text = f"{value:.4f}".rstrip("0").rstrip(".")
            written[label] = "0" if text == "-0" else text
        elif isinstance(value, str):
            written[label] = value
        elif isinstance(value, list):
            written[label] = ", ".join(map(str, value))
    return written


def test_what_a_vehicle_calls_itself_stays_text(pages: dict[str, Path], opened: Any) -> None:
    page = opened(pages["hostile"])
    assert page.evaluate("typeof window.hacked") == "undefined"
    assert page.locator("main img").count() == 0
    assert EVIL in page.evaluate("document.body.innerText")
    # the script reads the names as they are
    assert EVIL in page.evaluate(
        "JSON.parse(document.getElementById('data').textContent).vehicles.map((v) => v.id).join()"
    )
    # even a script that gets in does not run
    ran = page.evaluate("""() => {
      const own = document.createElement('script');
      own.textContent = 'window.hacked = 1';
      document.body.append(own);
      return typeof window.hacked;
    }""")
    assert ran == "undefined"
    assert ["Content Security Policy" in words for words in opened.complaints] == [True]
    opened.complaints.clear()


def test_an_alarm_leads_to_its_span_and_the_time_is_shared(pages: dict[str, Path], opened: Any) -> None:
    page = opened(pages["plain"])
    whole = page.locator("#window").inner_text()
    first = page.locator("article.alarm button.show").first
    first.click()
    page.wait_for_timeout(100)
    assert page.locator("#window").inner_text() != whole
    assert page.locator("article.alarm.chosen").count() == 1
    # its vehicle's plots, and values at the moment pointed at
    assert page.locator("#plots figure.plot").count() >= 3
    box = page.locator("#plots .grid:not(.small) canvas").first.bounding_box()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.5 * box["height"])
    page.wait_for_timeout(100)
    values = page.eval_on_selector_all("#plots output.value", "all => all.map((o) => o.textContent).filter(Boolean)")
    assert len(values) >= 2
    page.mouse.move(2, 2)
    page.keyboard.press("0")
    page.wait_for_timeout(100)
    assert page.locator("#window").inner_text() == whole
    page.keyboard.press("+")
    page.wait_for_timeout(100)
    assert page.locator("#window").inner_text() != whole


def test_tables_sort_by_any_column(pages: dict[str, Path], opened: Any) -> None:
    page = opened(pages["plain"])
    table = page.locator("#vehicles table")
    table.get_by_role("button", name="samples").click()
    numbers = table.locator("tbody tr").evaluate_all("rows => rows.map((r) => Number(r.children[4].dataset.v))")
    assert numbers == sorted(numbers)
    assert len(numbers) > 5


def test_axe_finds_nothing_in_any_theme_or_size(pages: dict[str, Path], opened: Any) -> None:
    for theme in ("dark", "light"):
        for size in (DESKTOP, PHONE):
            page = opened(pages["plain"], theme, size)
            # every detail open, where there may be more to find
            page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
            found = Axe().run(page).response["violations"]
            assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found] == [], (theme, size)
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= size["width"], (theme, size)


def test_on_a_phone_no_table_hides_its_reasons(pages: dict[str, Path], opened: Any) -> None:
    """Columns were a word wide, and the last one, which says why something was not judged, was out of sight."""
    page = opened(pages["plain"], "dark", PHONE)
    page.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")
    cells = page.locator("table:not([data-sortable]) td:not(:empty)").evaluate_all(
        "cells => cells.map((cell) => { const { left, right, width } = cell.getBoundingClientRect();"
        " return [left, right, width, getComputedStyle(cell, '::before').content, cell.textContent]; })"
    )
    assert len(cells) > 20
    for left, right, width, label, text in cells:
        assert 0 <= left < right <= PHONE["width"], text
        assert width > PHONE["width"] / 2, text
        assert len(label.strip('"')) > 1, text


def test_on_paper_it_is_light_and_has_no_controls(pages: dict[str, Path], opened: Any) -> None:
    page = opened(pages["plain"], "dark")
    page.emulate_media(media="print")
    assert not page.locator("header.bar").is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "light"
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


@pytest.mark.parametrize("name", ["pyulog_sample_log_small.ulg", "pyulog_sample_px4_events.ulg"])
def test_px4_logs_show_modes_and_the_short_one_says_that_nothing_was_judged(
    px4_logs: Path, tmp_path: Path, opened: Any, name: str
) -> None:
    out = tmp_path / "flight.html"
    assert main(["report", str(px4_logs / name), "--out", str(out)]) == 0
    assert out.stat().st_size < LIMIT_BYTES
    page = opened(out)
    modes = page.locator(".plot.modes canvas").get_attribute("aria-label")
    verdict = page.locator("#verdict")
    if "small" in name:
        assert verdict.get_attribute("data-tone") == "unjudged"
        assert "Nothing could be judged" in verdict.inner_text()
        assert "the recording ended before it could be judged" in verdict.inner_text()
        # "0" would be taken for good news
        assert "alarms\nnot judged" in page.locator(".title dl").inner_text()
        assert "Manual" in modes
        assert page.locator("figure.plot", has_text="jamming indicator").count() == 1
    else:
        assert [word in modes for word in ("Takeoff", "Return", "Hold")] == [True] * 3


@pytest.mark.long
def test_every_recording_stays_below_three_megabytes(recordings: Path, tmp_path: Path) -> None:
    logs = [str(path) for folder in ("px4", "flights", "adsb") for path in sorted((recordings / folder).iterdir())]
    assert main(["report", *logs, "--out", str(tmp_path)]) == 0
    sizes = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert len(sizes) == len(logs) + 1
    assert max(sizes.values()) < LIMIT_BYTES, sizes
