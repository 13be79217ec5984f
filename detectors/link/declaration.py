"""What the detector `link` declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated

from watchkeeper.config.detectors.link import Link
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, PerVehicle, Scenario, fact
from watchkeeper.detectors.link.stats import LinkStats
from watchkeeper.detectors.words import WHEN, known, listed, size
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.messages import Kind
from watchkeeper.streams.simulate.network import NetworkFault, network_batches, network_source

SECONDS = 80


class LinkFacts(Facts, frozen=True, kw_only=True):
    """The links of one vehicle against their own past."""

    latency_excess_s: Annotated[float | None, fact("s", "latency above the learned baseline; negative: earlier")] = None
    jitter_s: Annotated[float | None, fact("s", "how much the latency varies")] = None
    rate_ratio: Annotated[float | None, fact("ratio", "rate of the worst stream over its learned rate")] = None
    gap_s: Annotated[float | None, fact("s", "longest interval in the window")] = None
    reordered: Annotated[float | None, fact("samples", "that arrived out of order so far")] = None


def _say(subjects: Sequence[str], facts: LinkFacts, *, over: bool = False) -> str:
    excess_s = facts.latency_excess_s or 0.0
    words = []
    if "latency" in facts.causes:
        words.append(f"telemetry {'arrived' if over else 'arrives'} {size(excess_s, 's')} later than usual")
    if "early" in facts.causes:
        words.append(f"telemetry {'arrived' if over else 'arrives'} {size(-excess_s, 's')} earlier than usual")
    be = "were" if over else "are"
    for ending, what in (
        ("_loss", f"samples {be} missing"),
        ("_rate", f"samples {'came' if over else 'come'} more slowly"),
    ):
        streams = [cause.removesuffix(ending).upper() for cause in facts.causes if cause.endswith(ending)]
        if streams:
            words.append(f"{listed(streams)} {what}")
    if facts.rate_ratio is not None and any("_" in cause for cause in facts.causes):
        words[-1] += f" ({known(100.0 * facts.rate_ratio, 0, '%')} of usual)"
    if not words:
        words = ["telemetry came late or thin" if over else "telemetry comes late or thin"]
    return f"{listed(subjects)}: {listed(words)}{', worst' * over} {WHEN}"


def _thinned() -> Iterable[Batch]:
    fault = NetworkFault("loss", "gw-1", 45.0, 0.5)
    return network_batches(network_source(3, 6, 2, float(SECONDS), fault), float(SECONDS))


DECLARATION = Declaration(
    name="link",
    help="links that got slow, lossy or thin, judged by each vehicle's own past",
    settings=Link,
    subjects="vehicle",
    alone=True,
    per_vehicle=PerVehicle(
        axes=dict.fromkeys(LinkStats.COLUMNS, -1),
        turns=dict.fromkeys(LinkStats.TURNS, "bins"),
        newest="open",
        gateways=("via",),
    ),
    kinds=(
        AlarmKind(
            name="link",
            help="a vehicle's telemetry arrives later, thinner or with more holes than it used to",
            facts=LinkFacts,
            say=_say,
            was=partial(_say, over=True),
            causes={
                "latency": "later than usual",
                "early": "earlier than usual: a clock was set",
                **{f"{kind.word}_loss": f"samples of `{kind.word}` are missing" for kind in Kind},
                **{f"{kind.word}_rate": f"all samples of `{kind.word}` come more slowly" for kind in Kind},
            },
        ),
    ),
    gauges=(
        Gauge(name="vehicles", help="Vehicles with late or thin telemetry now, before debouncing"),
        Gauge(
            name="latency_excess_max_s",
            metric="link_max_latency_excess_seconds",
            help="Largest latency above a vehicle's learned baseline",
        ),
        Gauge(
            name="rate_ratio_min", metric="link_min_rate_ratio", help="Smallest rate of a stream over its learned rate"
        ),
    ),
    scenario=Scenario(SECONDS, _thinned),
)
