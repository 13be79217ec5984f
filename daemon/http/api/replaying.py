"""The playback of a replay over the API: where it is, to where it jumps, how fast it goes.

The log itself goes through the pipeline at full speed, into the history; what is played back is the history, at the
speed that a person wants. So a jump costs nothing, and alarms and outputs are those of any replay.
"""

from __future__ import annotations

from watchkeeper.daemon.http.api.playback import Playback
from watchkeeper.daemon.http.api.served import Served
from watchkeeper.daemon.http.api.shapes import Pause, ReplayState, Seek, Speed, StepBy
from watchkeeper.daemon.http.api.table import Call, Refusal, Route

NOT_A_REPLAY = {409: "This is no replay: time cannot be moved"}


def routes(served: Served) -> list[Route]:
    """The paths below /replay."""
    handlers = _Replaying(served)

    def post(path: str, said: str, body: type, handle: object) -> Route:
        return Route(
            method="POST", path=path, summary=said, body=body, answer=ReplayState, handle=handle, role="operate",  # type: ignore[arg-type]
            refusals=NOT_A_REPLAY,
        )  # fmt: skip

    return [
        Route(
            method="GET", path="/replay", summary="Where the playback is", answer=ReplayState, handle=handlers.state,
            refusals=NOT_A_REPLAY,
        ),
        post("/replay/seek", "Jump to a moment", Seek, handlers.seek),
        post("/replay/speed", "Play faster or slower", Speed, handlers.speed),
        post("/replay/pause", "Stand still, or go on", Pause, handlers.pause),
        post("/replay/step", "Some seconds on or back, and stand still", StepBy, handlers.step),
    ]  # fmt: skip


class _Replaying:
    def __init__(self, served: Served) -> None:
        self._served = served

    @property
    def _playback(self) -> Playback:
        if self._served.playback is None:
            raise Refusal(409, "not_a_replay", "this daemon listens to what happens now: time cannot be moved")
        return self._served.playback

    async def state(self, _call: Call) -> ReplayState:
        return self._playback.state()

    async def seek(self, call: Call) -> ReplayState:
        return self._playback.seek(call.body.t)

    async def speed(self, call: Call) -> ReplayState:
        return self._playback.play_at(call.body.speed)

    async def pause(self, call: Call) -> ReplayState:
        return self._playback.pause(on=call.body.on)

    async def step(self, call: Call) -> ReplayState:
        return self._playback.step(call.body.seconds)
