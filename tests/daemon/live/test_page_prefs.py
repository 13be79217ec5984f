"""What a reader may switch on: a sound, notifications of the browser, the receiver's range, tiles of a map server."""

from __future__ import annotations

import io
import math
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from live_screen import DESKTOP, Screen
from PIL import Image

# Every tone that is started, by its frequency; the real one sounds as well.
HEARD = """() => {
window.heard = [];
const made = AudioContext.prototype.createOscillator;
AudioContext.prototype.createOscillator = function () {
  const tone = made.call(this);
  const start = tone.start.bind(tone);
  tone.start = (at) => { window.heard.push(tone.frequency.value); start(at); };
  return tone;
};
}"""
# Every notification, on a page that looks as if nobody saw it.
SHOWN = """() => {
window.shown = [];
const Real = Notification;
window.Notification = class extends Real {
  constructor(title, options) { super(title, options); window.shown.push([title, options.body]); }
};
Object.defineProperty(document, 'hidden', { get: () => true });
}"""


def switch_on(page: Any, name: str) -> None:
    page.keyboard.press("?")
    page.locator(f"#{name}").check()
    page.keyboard.press("Escape")


def test_an_alarm_sounds_and_a_page_that_may_not_sound_says_so(screen: Any, listener: Any) -> None:
    one = screen()
    one.page.evaluate(HEARD)
    switch_on(one.page, "sound")
    assert one.page.evaluate("heard") == [440]
    assert one.page.evaluate("watchkeeper.prefs.troubles()") == []
    listener.aircraft(1000, 1012)
    one.see("heard", lambda tones: tones[-2:] in ([660, 660], [660, 880]))
    # what is more severe is heard although something sounded just now; what is not is the same sound
    before = one.page.evaluate("heard.length")
    one.page.evaluate("['caution', 'warning', 'warning', 'advisory'].forEach((each) => watchkeeper.prefs.play(each))")
    assert one.page.evaluate("heard.slice(-3)") == [880, 660, 880]
    assert one.page.evaluate("heard.length") <= before + 5
    one.page.evaluate("watchkeeper.prefs.audio.suspend()")
    one.see("document.getElementById('banner').innerText", lambda words: "no sound" in words)
    one.page.keyboard.press("Escape")
    one.see("watchkeeper.prefs.troubles().length === 0")


def test_an_alarm_is_a_notification_while_nobody_looks_and_a_refusal_is_said(screen: Any, listener: Any) -> None:
    one = screen()
    one.context.grant_permissions(["notifications"])
    one.page.evaluate(SHOWN)
    switch_on(one.page, "notify")
    listener.aircraft(1000, 1012)
    title, body = one.see("shown[0]")
    assert title in ("caution: conflict", "warning: conflict", "advisory: conflict")
    assert body.startswith("east and west: ")
    one.context.clear_permissions()
    one.see("document.getElementById('banner').innerText", lambda words: "notifications" in words)


@pytest.mark.parametrize(("secure", "said"), [(True, "does not allow this page to notify"), (False, "plain HTTP")])
def test_why_there_are_no_notifications_is_said_where_they_are_asked_for(
    screen: Any, *, secure: bool, said: str
) -> None:
    one = screen()
    one.page.evaluate("Notification.requestPermission = async () => 'denied'")
    one.page.evaluate(f"Object.defineProperty(window, 'isSecureContext', {{ value: {str(secure).lower()} }})")
    one.page.keyboard.press("?")
    assert one.page.locator("#notify-problem").inner_text() == ""
    one.page.locator("#notify").click()
    one.see("document.getElementById('notify-problem').textContent", lambda words: said in words)
    assert not one.page.locator("#notify").is_checked()


@pytest.mark.parametrize("watch", ['site = "0,0"\n'], indirect=True)
def test_the_range_outline_is_as_far_as_the_farthest_aircraft(screen: Any, listener: Any) -> None:
    one = screen()
    switch_on(one.page, "range")
    listener.aircraft(1000, 1003)
    one.see("watchkeeper.fleet.rows === 2")
    # at t = 1000 they were 12.5 NM from the site on both sides
    farthest_nm = one.see("watchkeeper.map.range.most / 1852")
    assert farthest_nm == pytest.approx(12.5, rel=0.05)
    assert one.page.evaluate("watchkeeper.map.range.far.filter((each) => each > 0).length") == 2
    # of directions in which nothing was heard it claims nothing: two slices, to the east and to the west
    drawn = one.page.evaluate(OUTLINED)
    assert drawn == [True, True, False, False]


# Whether the outline holds points to the east, west, north and south, at half of its width.
OUTLINED = """() => {
  const { range, view } = watchkeeper.map;
  const canvas = document.createElement('canvas');
  Object.assign(canvas, { width: view.width, height: view.height });
  const pen = canvas.getContext('2d', { willReadFrequently: true });
  const real = pen.fill.bind(pen);
  pen.fill = () => { pen.globalAlpha = 1; real(); };
  range.draw(pen, view, 'earth');
  const [x, y] = [view.px(range.site[0]), view.py(range.site[1])];
  const r = Math.sqrt(Math.max(...range.far)) * view.scale / 2;
  const off = 0.04 * r;
  return [[r, -off], [-r, -off], [off, -r], [off, r]].map(([dx, dy]) =>
    [off, -off].some((slip) => pen.getImageData(x + dx, y + (dx === off ? dy : slip), 1, 1).data[3] > 0));
}"""


class TileServer(ThreadingHTTPServer):
    """A map of one colour, which remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Tile)
        self.asked: list[str] = []
        self.well = True
        image = io.BytesIO()
        Image.new("RGB", (256, 256), (200, 30, 30)).save(image, "PNG")
        self.tile = image.getvalue()


class _Tile(BaseHTTPRequestHandler):
    server: TileServer

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200 if self.server.well else 404)
        self.send_header("Content-Type", "image/png")
        self.end_headers()
        if self.server.well:
            self.wfile.write(self.server.tile)

    def log_message(self, *_args: Any) -> None:
        """Quietly."""


@pytest.fixture(scope="module")
def tiles() -> Iterator[TileServer]:
    server = TileServer()
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    thread.join()


CREDIT = "document.getElementById('credit').textContent"


def colour(one: Screen) -> tuple[int, ...]:
    """That of the map a little off its middle, where nothing else is drawn."""
    box = one.page.locator("#air").bounding_box()
    seen = Image.open(io.BytesIO(one.page.screenshot()))
    found: tuple[int, ...] = seen.convert("RGB").getpixel(
        (box["x"] + box["width"] * 0.37, box["y"] + box["height"] * 0.37)
    )
    return found


@pytest.mark.parametrize("well", [True, False], ids=["answers", "refuses"])
def test_tiles_are_drawn_where_they_belong_and_without_them_there_is_still_a_map(
    browser: Any, daemon: Any, broker: Any, wait_for: Any, tmp_path: Any, tiles: TileServer, *, well: bool
) -> None:
    tiles.well, tiles.asked = well, []
    address = f"http://127.0.0.1:{tiles.server_address[1]}/{{z}}/{{x}}/{{y}}.png"
    config = tmp_path / "wk.toml"
    config.write_text(
        f'[broker]\nurl = "{broker.url}"\nclient_id = "{tmp_path.name}"\n'
        f'[http]\nport = 0\ntiles = "{address}"\ntiles_credit = "Red maps"\n'
        f'[sinks]\nstate_dir = "{tmp_path / "state"}"\nterminal = false\n'
    )
    process = daemon(config)
    wait_for(lambda: "connected to the broker" in process.log)
    url = next(word for word in process.log.split() if word.startswith("url=http://")).removeprefix("url=")
    one = Screen(browser, url, "light", DESKTOP, "reduce")
    try:
        one.see("Boolean(window.watchkeeper?.map)")
        wait_for(lambda: tiles.asked)
        assert all(0 <= int(x) < 2 ** int(z) and 0 <= int(y) < 2 ** int(z) for z, x, y in map(numbers, tiles.asked))
        red = (200, 30, 30)
        if well:
            wait_for(lambda: math.dist(colour(one), red) < 60)
            one.see(CREDIT, lambda words: words == "Red maps")
        else:
            wait_for(lambda: one.page.evaluate("watchkeeper.map.base.land.length > 0"))
            assert math.dist(colour(one), red) > 60
            # the credit is that of the map that is seen, and it says why it is another
            one.see(CREDIT, lambda words: words == "Natural Earth; the map server gives no tiles")
    finally:
        one.context.close()


def numbers(path: str) -> list[str]:
    return path.removeprefix("/").removesuffix(".png").split("/")
