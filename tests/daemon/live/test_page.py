"""The live page in a real browser, on a real daemon and a real broker: what a person at the screen sees and does."""

from __future__ import annotations

import json
import os
import threading
import time
from itertools import pairwise
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from live_screen import DESKTOP, PHONE, Screen

from watchkeeper.config.schema import DEFAULT
from watchkeeper.streams.codec.encode import encode_batch
from watchkeeper.streams.simulate import simulate

# Every state that the link's mark shows, in order; some last only half a second.
LINK_STATES = """() => {
  const link = document.getElementById('link');
  window.linkStates = [];
  new MutationObserver(() => window.linkStates.push(link.dataset.state))
    .observe(link, {attributes: true, attributeFilter: ['data-state']});
}"""
# When each alarm's row appeared, by the browser's clock, which is this machine's.
STOPWATCH = """() => {
  window.appeared = {};
  new MutationObserver(() => {
    for (const row of document.querySelectorAll('.alarm')) window.appeared[row.dataset.id] ??= Date.now() / 1000;
  }).observe(document.getElementById('alarms'), {childList: true});
}"""


KEEP_MOVING = """() => {
  let n = 0;
  const step = () => {
    watchkeeper.map.view.pan(n++ % 400 < 200 ? 1 : -1, 0);
    requestAnimationFrame(step);
  };
  step();
}"""


def test_a_conflict_appears_within_a_second_is_acknowledged_and_clears(
    screen: Any, listener: Any, wait_for: Any
) -> None:
    one, other = screen(), screen("light", PHONE)
    one.page.evaluate(STOPWATCH)
    listener.aircraft(1000, 1012)
    (alarm,) = wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "conflict"])
    told_s = time.time()
    appeared_s = one.see(f"appeared['{alarm['id']}']")
    print(f"on the page {appeared_s - told_s:+.3f} s after the alarm was heard on MQTT")
    assert appeared_s - told_s < 1.0
    # the pair is in the picture, with its closest approach
    one.see("watchkeeper.newest.columns.pair_a.length === 1")
    assert one.page.evaluate("watchkeeper.newest.columns.pair_dcpa_nm[0]") == pytest.approx(0.0, abs=0.1)
    assert "east × west" in one.row("conflict").inner_text()

    before = listener.retained()
    one.row("conflict").locator(".ack").click()
    one.see(one.classes("conflict"), lambda found: "acked" in found)
    other.see(other.classes("conflict"), lambda found: "acked" in found)
    one.page.reload()
    one.see("document.querySelectorAll('.alarm.acked').length === 1")
    assert listener.retained() == before

    listener.aircraft(1013, 1030, turned=True)
    wait_for(lambda: [a for a in listener.alarms("cleared") if a["kind"] == "conflict"])
    for each in (one, other):
        each.see(each.classes("conflict"), lambda found: "cleared" in found and "acked" in found)
        each.see("document.getElementById('f-caution').textContent", lambda found: found == "0")


def test_ways_out_of_a_conflict_are_drawn_as_the_alarm_says_them(screen: Any, listener: Any, wait_for: Any) -> None:
    page = screen()
    listener.aircraft(1000, 1012)
    (alarm,) = wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "conflict"])
    page.see(f"Boolean(document.querySelector('.alarm[data-id=\"{alarm['id']}\"]'))")
    page.row("conflict").locator(".open").click()
    page.see("document.querySelectorAll('.alarm.chosen .way').length === 2")
    event = page.page.evaluate("watchkeeper.rows().find((row) => row.alarm.id === watchkeeper.chosen).alarm.event")
    assert [way["id"] for way in event["evidence"]["ways"]] == event["subjects"] == ["east", "west"]
    for k, way in enumerate(event["evidence"]["ways"]):
        card = page.page.locator(".alarm.chosen .way").nth(k)
        assert card.locator("h4").inner_text() == way["id"]
        ((first, last),) = way["trk_deg"]["free"]
        assert card.locator(".rose").get_attribute("aria-label") == f"track {first:03.0f}° to {last:03.0f}°"
        assert card.locator(".rose .free").count() == 1
        for rail, band in zip(card.locator(".rail").all(), ("gs_kt", "alt_ft", "vs_fpm"), strict=True):
            assert rail.locator("i").count() == len(way[band]["free"])
    assert "No instruction" in page.row("conflict").inner_text()


def test_pausing_shows_the_past_and_the_alarms_of_that_time(screen: Any, listener: Any, wait_for: Any) -> None:
    page = screen()
    # the tick of a second ends with the first sample after it
    listener.aircraft(1000, 1002)
    page.see("watchkeeper.history.last >= 1001")
    listener.aircraft(1003, 1003)
    page.see("watchkeeper.history.entries.length >= 2")
    page.page.keyboard.press("Space")
    page.see("document.body.classList.contains('paused')")
    listener.aircraft(1004, 1012)
    wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "conflict"])
    page.see("watchkeeper.alarms.all.size === 1")
    # it is not raised yet at the moment that is shown
    assert page.page.locator(".alarm").count() == 0
    shown = page.page.evaluate("watchkeeper.fleet.picture.t")
    page.see("watchkeeper.history.last > 1010")
    assert page.page.evaluate("watchkeeper.fleet.picture.t") == shown <= 1004
    page.page.keyboard.press("End")
    page.see("document.querySelectorAll('.alarm').length === 1")
    assert page.page.evaluate("watchkeeper.fleet.picture.t") > 1010


def test_a_reload_loses_neither_the_past_nor_the_place_in_it(screen: Any, listener: Any, wait_for: Any) -> None:
    page = screen()
    listener.aircraft(1000, 1012)
    (raised,) = wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "conflict"])
    listener.aircraft(1013, 1040, turned=True)
    wait_for(lambda: [a for a in listener.alarms("cleared") if a["kind"] == "conflict"])
    page.see("document.querySelectorAll('.alarm.cleared').length === 1")
    page.page.evaluate(f"watchkeeper.timeline.show({raised['t']}, {{push: true}})")
    opened = f'.alarm[data-id="{raised["id"]}"]'
    page.see(f"document.querySelector('{opened}:not(.cleared)') !== null && location.hash.includes('t=')")
    for _ in range(2):
        # the tab has seen nothing of it: what is shown is the daemon's history
        page.page.reload()
        page.see(f"window.watchkeeper?.past.t === {raised['t']} && watchkeeper.fleet.picture?.t === {raised['t']}")
        page.see(f"document.querySelector('{opened}:not(.cleared)') !== null")
        found = page.page.evaluate("watchkeeper.rows().map(({alarm}) => alarm.event)")
        assert found == [raised]
    page.page.keyboard.press("End")
    page.see(f"document.querySelector('{opened}.cleared') !== null")
    page.page.reload()
    page.see("window.watchkeeper?.newest && watchkeeper.timeline.paused === null")
    page.see(f"document.querySelector('{opened}.cleared') !== null")
    page.see("watchkeeper.timeline.extent()[0] <= 1001")


@pytest.mark.parametrize("watch", ["[history]\nenabled = false\n"], indirect=True)
def test_without_a_history_the_tab_shows_what_it_has_seen_and_no_evidence_of_another_moment(
    screen: Any, listener: Any, wait_for: Any
) -> None:
    page = screen()
    listener.aircraft(1000, 1012)
    (raised,) = wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "conflict"])
    page.see("watchkeeper.history.last >= 1011 && !watchkeeper.past.kept")
    listener.aircraft(1013, 1020)
    page.see("watchkeeper.history.last >= 1019")
    page.see(f"watchkeeper.alarms.all.get('{raised['id']}').event.t > 1012")
    page.page.evaluate("watchkeeper.timeline.show(1012)")
    assert page.page.evaluate("watchkeeper.fleet.picture.t") <= 1012
    page.row("conflict").locator(".open").click()
    page.see("document.querySelector('.alarm.chosen .told').innerText", lambda told: "is not kept" in told)
    assert page.page.locator(".alarm.chosen .facts").count() == 0
    # that there is no history is all that the browser complains about
    assert all("503" in words for words in page.complaints)
    page.complaints.clear()


def test_a_vehicle_can_be_found_by_keyboard_and_looked_into(screen: Any, listener: Any) -> None:
    page = screen()
    listener.aircraft(1000, 1006)
    page.see("watchkeeper.fleet.slots.size === 2")
    page.page.keyboard.press("/")
    page.page.keyboard.type("wes")
    page.page.keyboard.press("Enter")
    page.see("watchkeeper.selected === 'west' && watchkeeper.vehicle.detail?.known")
    page.see("document.getElementById('pane-vehicle').innerText", lambda pane: "FL300" in pane and "kinematics" in pane)
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("?")
    assert page.page.locator("#help").is_visible()
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("4")
    page.see("document.getElementById('pane-network').innerText", lambda pane: "2 aircraft" in pane)


def test_an_alarm_is_shelved_for_a_while_for_everybody_and_taken_down(
    screen: Any, listener: Any, wait_for: Any
) -> None:
    one, other = screen(), screen("light", PHONE)
    listener.aircraft(1000, 1012)
    wait_for(lambda: [a for a in listener.alarms("raised") if a["kind"] == "conflict"])
    one.see("document.querySelectorAll('.alarm').length === 1")
    one.row("conflict").locator(".open").click()
    one.row("conflict").locator("select").select_option("subjects:60")
    for each in (one, other):
        each.see(each.classes("conflict"), lambda found: "shelved" in found)
        # it is still there, and does not ask for attention
        assert each.page.evaluate("document.getElementById('f-caution').textContent") == "0"
    one.page.locator(".alarm button", has_text="Take off the shelf").click()
    other.see(other.classes("conflict"), lambda found: "shelved" not in found)
    other.see("document.getElementById('f-caution').textContent", lambda found: found == "1")


def test_a_token_that_may_only_look_is_offered_no_change(screen: Any, listener: Any) -> None:
    one = screen()
    listener.aircraft(1000, 1012)
    one.see("document.querySelectorAll('.alarm').length > 0")
    one.row("conflict").locator(".open").click()
    controls = [one.row("conflict").locator(".ack"), one.row("conflict").locator(".acts select")]
    assert all(control.is_visible() for control in controls)
    one.page.evaluate("import('/page/reader.js').then(({ whoReads }) => whoReads('visitor', false))")
    one.see("document.body.classList.contains('looks-only')")
    assert not any(control.is_visible() for control in controls)
    assert one.row("conflict").locator(".acts button", has_text="Copy link").is_visible()


def test_input_that_is_refused_is_said_on_top_of_the_page(screen: Any, listener: Any) -> None:
    page = screen()
    listener.aircraft(1000, 1003)
    page.see("watchkeeper.newest?.t !== null && document.getElementById('banner').hidden")
    for _ in range(3):
        listener.send("telemetry/adsb/east", b'{"t": .5}')
    page.see("document.getElementById('banner-words').textContent", lambda words: "3 messages were refused" in words)


def test_units_are_those_that_the_reader_wants_and_stay_so(screen: Any, listener: Any) -> None:
    page = screen()
    listener.aircraft(1000, 1006)
    page.see("watchkeeper.fleet.slots.size === 2")
    page.page.keyboard.press("?")
    page.page.locator("#units").select_option("metric")
    page.page.keyboard.press("Escape")
    page.page.keyboard.press("2")
    metres = "document.querySelector('.rows .row')?.innerText ?? ''"
    page.see(metres, lambda row: "9144 m" in row and "231.5 m/s" in row)
    page.page.reload()
    page.see("window.watchkeeper?.fleet.slots.size === 2")
    page.see(metres, lambda row: "9144 m" in row)


def test_a_lost_connection_is_said_and_mended(screen: Any, listener: Any) -> None:
    page = screen()
    listener.aircraft(1000, 1003)
    page.see("watchkeeper.history.entries.length > 0")
    kept = page.page.evaluate("watchkeeper.history.entries.length")
    page.page.evaluate(LINK_STATES)
    page.page.evaluate("watchkeeper.wire.line.close()")
    page.see("linkStates", lambda states: "lost" in states and states[-1] == "live")
    # the same daemon: what is known stays known
    assert page.page.evaluate("watchkeeper.history.entries.length") >= kept


def test_axe_finds_nothing_in_any_pane_theme_or_size(screen: Any, listener: Any) -> None:
    listener.aircraft(1000, 1002)
    listener.fixes("uav", 1001, 1002)
    listener.aircraft(1003, 1012)
    for theme in ("dark", "light"):
        for size in (DESKTOP, PHONE):
            check_with_axe(screen(theme, size))


def check_with_axe(page: Screen) -> None:
    page.see("document.querySelectorAll('.alarm').length > 0 && watchkeeper.fleet.rows > 2")
    page.page.keyboard.press("j")
    page.see("watchkeeper.selected !== null")
    for pane in ("alarms", "fleet", "vehicle", "network"):
        page.page.evaluate(f"watchkeeper.showPane('{pane}')")
        if pane == "vehicle":
            page.see("watchkeeper.vehicle.detail?.known")
        if pane == "network":
            page.see("watchkeeper.network.data !== null")
        found = Axe().run(page.page).response["violations"]
        assert [(v["id"], [n["html"][:120] for n in v["nodes"]]) for v in found] == [], pane
    for key in ("?", "x"):
        page.page.keyboard.press(key)
        assert Axe().run(page.page).response["violations"] == [], key
        page.page.keyboard.press("Escape")


def crowd(listener: Any, seconds: float, *, pace: bool) -> None:
    """2,000 aircraft, a frame of reports a second."""
    began = time.monotonic()
    for i, batch in enumerate(simulate("random", vehicles=2000, seconds=seconds, seed=3).batches()):
        for topic, payload in encode_batch(batch, DEFAULT.topics):
            listener.send(topic, payload)
        if pace:
            time.sleep(max(0.0, began + i + 1 - time.monotonic()))


def test_two_thousand_vehicles_are_shown_and_the_past_of_them_is_bounded(screen: Any, listener: Any) -> None:
    page = screen()
    before = page.page.evaluate("watchkeeper.history.memory.byteLength")
    crowd(listener, 6.0, pace=False)
    page.see("watchkeeper.fleet.rows", lambda rows: rows >= 1950)
    assert page.page.evaluate("document.getElementById('f-vehicles').textContent").startswith(("1,9", "2,0"))
    # as many moments as five minutes bring, and more, into the memory that was reserved at the start
    page.page.evaluate("""async () => {
      const {history, newest} = watchkeeper;
      const {at, length} = history.entries.at(-1);
      const bytes = history.memory.buffer.slice(at, at + length);
      for (let i = 1; i <= 1000; i++) history.add(bytes, {...newest, t: newest.t + i});
    }""")
    assert page.page.evaluate("watchkeeper.history.memory.byteLength") == before
    assert 250 <= page.page.evaluate("watchkeeper.history.entries.length") <= 300


NAMES = "[...document.querySelectorAll('.rows .row:not([hidden]) .name')].map((name) => name.textContent)"
ALTITUDES = """watchkeeper.table.order.map((slot) => {
  const {fleet} = watchkeeper; return fleet.picture.columns.alt_m[fleet.row(slot)]; })"""


def test_the_table_sorts_filters_keeps_its_order_under_the_pointer_and_remembers_a_watch_list(
    screen: Any, listener: Any
) -> None:
    page = screen()
    crowd(listener, 3.0, pace=False)
    page.see("watchkeeper.fleet.rows", lambda rows: rows >= 1950)
    page.page.keyboard.press("2")
    # of all of them only those that can be seen exist
    page.see(NAMES, lambda names: 10 < len(names) < 60)
    page.page.get_by_role("columnheader", name="alt").get_by_role("button").click()
    found = page.see(ALTITUDES, lambda found: len(found) >= 1950)
    assert found == sorted(found, reverse=True)

    page.page.locator(".rows .row .star").nth(2).click()
    starred = page.page.evaluate("[...watchkeeper.watch.ids]")
    assert len(starred) == 1
    before = page.page.evaluate("watchkeeper.table.order.slice(0, 50)")
    # the newest picture has other altitudes, and the pointer is on the table
    page.page.evaluate("watchkeeper.fleet.picture.columns.alt_m.reverse(), watchkeeper.table.render()")
    assert page.page.evaluate("watchkeeper.table.order.slice(0, 50)") == before

    page.page.reload()
    page.see("window.watchkeeper?.fleet.rows", lambda rows: rows is not None and rows >= 1950)
    page.page.get_by_role("button", name="watch list", exact=False).first.click()
    page.see("watchkeeper.table.order.length === 1")
    assert page.page.evaluate("watchkeeper.table.rows[0].id") == starred[0]


@pytest.mark.long
def test_two_thousand_vehicles_for_a_minute_at_thirty_frames_a_second_without_growth(
    screen: Any, listener: Any
) -> None:
    """Map and table open: half a minute left alone, then half a minute in which the map is moved with every frame."""
    page = screen(motion="no-preference")
    page.page.evaluate("watchkeeper.showPane('fleet')")
    devtools = page.context.new_cdp_session(page.page)
    devtools.send("Performance.enable")

    def heap_mb() -> float:
        devtools.send("HeapProfiler.collectGarbage")
        found = {m["name"]: m["value"] for m in devtools.send("Performance.getMetrics")["metrics"]}
        return float(found["JSHeapUsedSize"]) / 1e6

    sender = threading.Thread(target=crowd, args=(listener, 85.0), kwargs={"pace": True})
    sender.start()
    page.see("watchkeeper.fleet.rows", lambda rows: rows >= 1950)
    # three others open the page, and leave
    firsts_ms = []
    for _ in range(3):
        other = screen()
        firsts_ms.append(other.see("watchkeeper.map.stats.first_ms"))
        other.page.goto("about:blank")
    time.sleep(5)
    heaps, frames = [heap_mb()], [page.page.evaluate("({...watchkeeper.map.stats, at: performance.now()})")]
    for i in range(6):
        if i == 3:
            page.page.evaluate(KEEP_MOVING)
        time.sleep(10)
        heaps.append(heap_mb())
        frames.append(page.page.evaluate("({...watchkeeper.map.stats, at: performance.now()})"))
    sender.join()
    rates = [1000 * (b["frames"] - a["frames"]) / (b["at"] - a["at"]) for a, b in pairwise(frames)]
    draws = [1000 * (b["draws"] - a["draws"]) / (b["at"] - a["at"]) for a, b in pairwise(frames)]
    total = 1000 * (frames[-1]["frames"] - frames[0]["frames"]) / (frames[-1]["at"] - frames[0]["at"])
    print(json.dumps({
        "frames_per_s": round(total, 1), "by_10_s": [round(r, 1) for r in rates],
        "draws_per_s": [round(d, 1) for d in draws],
        "heap_mb": [round(h, 2) for h in heaps], "first_picture_ms": [round(ms) for ms in firsts_ms],
        "cpus": os.cpu_count(), "load": os.getloadavg()[0],
    }))  # fmt: skip
    assert total >= 30
    assert sorted(firsts_ms)[1] < 1000
    assert heaps[-1] - heaps[0] < 1.0


INSIDE = """([lon, lat]) => {
  const {base, views} = watchkeeper.map;
  const pen = new OffscreenCanvas(40, 40).getContext('2d');
  const view = Object.assign(Object.create(Object.getPrototypeOf(views.earth)), views.earth, {width: 40, height: 40});
  const R = 6378137;
  view.set(R * lon * Math.PI / 180, R * Math.log(Math.tan(Math.PI / 4 + lat * Math.PI / 360)), 0.001);
  base.draw(pen, view);
  return pen.getImageData(20, 20, 1, 1).data[3] > 0;
}"""


def test_land_is_where_it_is_on_both_sides_of_the_date_line(screen: Any) -> None:
    page = screen()
    page.see("watchkeeper.map.base.land.length > 0 && watchkeeper.map.base.airports.length > 0")
    # Zurich, Kansas, the Chukchi side of Russia, two sides of Antarctica; then the seas
    for place in ((8.5, 47.4), (-98.0, 38.5), (-175.0, 66.5), (179.0, 67.5), (60.0, -75.0), (-110.0, -80.0)):
        assert page.page.evaluate(INSIDE, place), place
    for place in ((-30.0, 40.0), (5.0, 43.0), (-178.0, 40.0), (179.5, 40.0), (0.0, -60.0), (30.0, 80.0)):
        assert not page.page.evaluate(INSIDE, place), place
    lat = page.page.evaluate(
        "(2 * Math.atan(Math.exp(watchkeeper.map.base.airports.find(({code}) => code === 'ZRH').y / 6378137))"
        " - Math.PI / 2) * 180 / Math.PI"
    )
    assert lat == pytest.approx(47.46, abs=0.02)


def test_a_remark_about_the_declared_topology_is_written_out(screen: Any) -> None:
    page = screen().page
    remark = {"declared": "uav1 behind gw1", "found": "behind gw2"}
    card = page.evaluate(
        """async (remark) => (await import('/page/story.js')).diagnosisCard(
             {type: 'cut', location: 'gw1', confidence: 0.9, evidence: [remark]}).textContent""",
        remark,
    )
    assert "declared: uav1 behind gw1; found: behind gw2" in card
