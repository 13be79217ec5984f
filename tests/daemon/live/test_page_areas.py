"""Areas on the live page: one is drawn with the mouse or by numbers, shelved for everybody, shown, and taken down."""

from __future__ import annotations

from typing import Any

import pytest
from live_screen import PHONE, Screen


def raised(listener: Any, wait_for: Any) -> None:
    listener.aircraft(1000, 1012)
    wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "conflict"])


def drag(screen: Screen, radius_px: float) -> None:
    """A circle around the middle of the map."""
    screen.page.locator("#area").click()
    box = screen.page.locator("#air").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    screen.page.mouse.move(x, y)
    screen.page.mouse.down()
    screen.page.mouse.move(x + radius_px / 2, y)
    screen.page.mouse.move(x + radius_px, y)
    screen.page.mouse.up()
    screen.see("document.getElementById('area-dialog').open")


def test_an_area_that_was_drawn_is_shelved_for_everybody_and_taken_down(
    screen: Any, listener: Any, wait_for: Any
) -> None:
    one, other = screen(), screen("light", PHONE)
    raised(listener, wait_for)
    for each in (one, other):
        each.see("document.querySelectorAll('.alarm').length === 1 && watchkeeper.fleet.rows === 2")
    # both aircraft are in the middle half of the map
    one.page.keyboard.press("f")
    one.see("!watchkeeper.map.view.move")
    before = one.page.evaluate("watchkeeper.map.view.x")
    drag(one, 300)
    assert one.page.evaluate("watchkeeper.map.view.x") == before
    one.page.locator("#area-reason").fill("exercise")
    one.page.locator("#area-form button[type=submit]").click()
    one.see("!document.getElementById('area-dialog').open")
    for each in (one, other):
        each.see(each.classes("conflict"), lambda found: "shelved" in found)
        each.see("watchkeeper.shelves.all.length === 1 && !document.getElementById('shelves').hidden")
        assert each.page.evaluate("document.getElementById('f-caution').textContent") == "0"
        assert each.page.locator("#shelves-words").inner_text() == "1 shelf, 1 active alarm on it"
    # the circle is where it was drawn
    area = one.page.evaluate("watchkeeper.shelves.all[0].area")
    middle = one.page.evaluate("watchkeeper.area.middle()")
    assert (area["lat"], area["lon"]) == pytest.approx((middle["lat"], middle["lon"]), abs=0.02)
    map_px = one.page.evaluate("Math.min(watchkeeper.map.view.width, watchkeeper.map.view.height)")
    assert area["radius_m"] == pytest.approx(middle["radius_m"] * 300 / (map_px / 4), rel=0.02)
    other.page.locator("#shelves-words").click()
    assert "exercise" in other.page.locator("#shelves-list").inner_text()
    other.page.locator("#shelves-list button", has_text="Show").click()
    other.page.locator("#shelves-list button", has_text="Take down").click()
    for each in (one, other):
        each.see(each.classes("conflict"), lambda found: "shelved" not in found)
        each.see("document.getElementById('shelves').hidden")


def test_an_area_can_be_shelved_from_an_alarm_with_the_keyboard_and_holds_no_other_kind(
    screen: Any, listener: Any, wait_for: Any
) -> None:
    page = screen()
    raised(listener, wait_for)
    page.see("document.querySelectorAll('.alarm').length === 1 && watchkeeper.fleet.rows === 2")
    page.row("conflict").locator(".open").click()
    page.row("conflict").locator("select").select_option("area")
    page.see("document.getElementById('area-dialog').open")
    # around the alarm, and for its kind only
    assert page.page.locator("#area-kind").input_value() == "conflict"
    assert float(page.page.locator("#area-radius").input_value()) == 10.0
    page.page.locator("#area-kind").select_option("silence")
    page.page.keyboard.press("Enter")
    page.see("watchkeeper.shelves.all.length === 1")
    assert page.page.locator("#shelves-words").inner_text() == "1 shelf, 0 active alarms on it"
    assert "shelved" not in page.page.evaluate(page.classes("conflict"))
    page.page.keyboard.press("x")
    page.see("document.getElementById('area-dialog').open")
    page.page.locator("#area-radius").fill("500")
    page.page.keyboard.press("Enter")
    page.see("watchkeeper.shelves.all.length === 2")
    page.see(page.classes("conflict"), lambda found: "shelved" in found)
