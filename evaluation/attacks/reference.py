"""Prints docs/evaluation/attacks.md from the catalogue; `make docs` calls it."""

from __future__ import annotations

from watchkeeper.evaluation.attacks.catalogue import Catalogue, catalogue

_INTRO = """\
# The attacks

What `watchkeeper evaluate protocol` does to held-out flights, and `watchkeeper inject` to any log. The catalogue is
`config/attacks.json`; this page is generated from it (`make docs`).

    watchkeeper inject list
    watchkeeper inject gps_drift_2mps flight.wklog spoofed.wklog         # and spoofed.wklog.truth.json
    watchkeeper inject gps_bias_20m flight.wklog out.wklog --onset 120 --duration 60 --seed 7
    watchkeeper replay spoofed.wklog

{attacks} attacks of {families} families. Each lasts {duration} s and begins at a random time, at least {earliest} s
after the first sample, early enough to leave {tail} s after it, and while the vehicle moves (mean speed over the window
{speed} m/s or more; a vehicle that never does is attacked anywhere). Onset and directions come from dice that depend on
family, seed, flight id and repeat: the same again on any machine, and the same moment and direction for every magnitude
of a family. Every attack is also run until the flight ends, with an onset that leaves {lasting} s where the flight is
long enough. Nothing but the samples in the window changes. Horizontal directions are random; accelerometer and gyro
biases point any way in the body.

| family | sensor | what happens | magnitudes | seed |
|---|---|---|---|---|
"""
_NOTES = """
`coordinated_imu` turns the invented acceleration into the body with the attitude that the recording has (the attacker
may know what the detector may not use), or level and along the track without one; it expects `ned` and `frd`.
`closed_loop` does the same with what the vehicle really does: it leans into the acceleration as a multirotor would,
and the receiver shows the transient of the autopilot's loop (1 rad/s, damping 0.8) and no more.

A field that a receiver does not send (hdop, eph, sats) is not made up by `gps_jamming`. A limit of
`imu_*_saturation` that no sample reaches changes nothing: such a case is left out of the evaluation and named in its
result.

## Add one

One function in `evaluation/attacks/gps.py` or `evaluation/attacks/imu.py` and its line in `EFFECTS`, one family and one
entry per magnitude in `config/attacks.json`, `make docs`. The tests take it from there.
"""


def reference(known: Catalogue) -> str:
    """The page."""
    onset = known.onset
    durations = sorted({attack.duration_s for attack in known.attacks})
    page = _INTRO.format(
        attacks=len(known.attacks), families=len(known.families), duration=" or ".join(f"{d:g}" for d in durations),
        earliest=f"{onset.earliest_s:g}", tail=f"{onset.tail_s:g}", speed=f"{onset.min_speed_mps:g}",
        lasting=f"{onset.lasting_s:g}",
    )  # fmt: skip
    rows = []
    for name, family in known.families.items():
        own = [attack for attack in known.attacks if attack.family == name]
        sizes = ", ".join(f"{attack.magnitude:g}" for attack in own) + f" {family.unit}" if family.unit else "–"
        rows.append(f"| `{name}` | {family.stream} | {family.description} | {sizes} | {own[0].seed} |")
    return page + "\n".join(rows) + "\n" + _NOTES


if __name__ == "__main__":
    print(reference(catalogue()), end="")
