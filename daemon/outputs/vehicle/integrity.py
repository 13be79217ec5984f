"""What gps_imu thinks of a vehicle's receiver, told to the vehicle: GNSS_INTEGRITY by MAVLink over UDP.

A round a second, and one at once when there is news: spoofing and jamming, each unknown, none or detected.

    no alarm, and gps_imu judges the vehicle     none, none
    an alarm that is called spoofing or jamming  detected, and none of the other
    any other alarm, and no judgement            unknown, unknown

An alarm counts from `severity` on, a name from `confidence` on. A dry run, which is the default, sends nothing: it logs
each change with the bytes that it would send. What the autopilot does with the message is its own business; this is no
command. The bytes are made by message.py, and go out by daemon/outputs/udp/rounds.py.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

from watchkeeper.config.outputs import GnssIntegrity
from watchkeeper.daemon.live.view import Watched
from watchkeeper.daemon.outputs.base import Context, Declaration
from watchkeeper.daemon.outputs.udp.rounds import Rounds
from watchkeeper.daemon.outputs.vehicle.message import State, framed, payload
from watchkeeper.detectors.base import SEVERITIES

# Alarms about a receiver: it contradicts the IMU, or a contradiction has ended in silence.
KINDS = ("gps_imu", "silence")
SPOOFING, JAMMING = "gps_spoofing", "gps_jamming"
log = logging.getLogger(__name__)


class IntegritySink(Rounds):
    """One vehicle."""

    name = "gnss_integrity"

    def __init__(self, settings: GnssIntegrity, watched: Watched) -> None:
        super().__init__(settings.url)
        self._settings = settings
        self._watched = watched
        self._sequence = 0
        self._said: tuple[State, State] | None = None

    async def run(self) -> None:
        """See Rounds; a dry run opens no socket."""
        if not self._settings.dry_run:
            await super().run()
        while True:
            shown = self.waiting
            list(self.messages())
            self.shown(shown)
            await self.pause()

    def messages(self) -> Iterator[bytes]:
        """One message, or none in a dry run; a change is logged in both."""
        cfg, found = self._settings, self.verdict()
        spoofing, jamming = found
        message = framed(payload(cfg.receiver, spoofing, jamming), cfg.system, cfg.component, self._sequence)
        if found != self._said:
            self._said = found
            log.warning(
                "GNSS_INTEGRITY for %s, %s: spoofing %s, jamming %s: %s",
                cfg.vehicle, "not sent (dry run)" if cfg.dry_run else f"to {cfg.url}",
                spoofing.name.lower(), jamming.name.lower(), message.hex(),
            )  # fmt: skip
        self._sequence = (self._sequence + 1) & 0xFF
        if not cfg.dry_run:
            yield message

    def verdict(self) -> tuple[State, State]:
        """Spoofing and jamming, as far as they are known now."""
        cfg, nothing = self._settings, (State.UNKNOWN, State.UNKNOWN)
        least = SEVERITIES.index(cfg.severity)
        active = [e for e in self._watched.active() if e.kind in KINDS and e.subjects == (cfg.vehicle,)]
        grave = [event for event in active if SEVERITIES.index(event.severity) >= least]
        named = [d for event in grave if (d := event.diagnosis) is not None and d["confidence"] >= cfg.confidence]
        types = {d["type"] for d in named}
        if SPOOFING in types:
            return State.DETECTED, State.NONE
        if JAMMING in types:
            return State.NONE, State.DETECTED
        pipeline = self._watched.pipeline
        slot = pipeline.fleet.slot_of.get(cfg.vehicle, -1)
        # a detector that is switched off has no row
        judged = slot >= 0 and pipeline.guard.coverage.of(slot).get("gps_imu", {}).get("watched", False)
        if active or not judged:
            return nothing
        return State.NONE, State.NONE


def _make(settings: GnssIntegrity, context: Context) -> IntegritySink:
    return IntegritySink(settings, context.watched)


GNSS_INTEGRITY = Declaration(
    name="gnss_integrity",
    help="MAVLink's GNSS_INTEGRITY of one vehicle, for its autopilot or companion; logged only, unless told to send",
    settings=GnssIntegrity,
    make=_make,
    asked=lambda config: [config.gnss_integrity] if config.gnss_integrity.vehicle else [],
)
