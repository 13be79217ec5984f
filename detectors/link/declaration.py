"""What the detector `link` declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated

from watchkeeper.config.detectors.link import Link
from watchkeeper.detectors.declaration import AlarmKind, Declaration, Facts, Gauge, Scenario, fact, known, listed
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


def _say(subjects: Sequence[str], facts: LinkFacts) -> str:
    words = []
    for cause in facts.causes:
        stream, _, what = cause.rpartition("_")
        if cause == "latency":
            words.append(f"telemetry arrives {known(facts.latency_excess_s, 1, 's')} later than usual")
        elif cause == "early":
            words.append("telemetry is stamped in the future: a clock was set, or a queue has drained")
        elif what == "loss":
            words.append(f"{stream.upper()} samples are missing")
        else:
            words.append(f"{stream.upper()} comes more slowly than usual")
    if facts.rate_ratio is not None and any("_" in cause for cause in facts.causes):
        words[-1] += f" ({known(100.0 * facts.rate_ratio, 0, '%')} of the usual rate arrive)"
    return f"The link of {listed(subjects)} is impaired: {listed(words) or 'late or thin telemetry'}."


def _thinned() -> Iterable[Batch]:
    fault = NetworkFault("loss", "gw-1", 45.0, 0.5)
    return network_batches(network_source(3, 6, 2, float(SECONDS), fault), float(SECONDS))


DECLARATION = Declaration(
    name="link",
    help="links that got slow, lossy or thin, judged by each vehicle's own past",
    settings=Link,
    subjects="vehicle",
    kinds=(
        AlarmKind(
            name="link",
            help="a vehicle's telemetry arrives later, thinner or with more holes than it used to",
            facts=LinkFacts,
            say=_say,
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
