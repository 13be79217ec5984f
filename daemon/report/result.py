"""A log after its replay: everything that the parts of a report's page are made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from watchkeeper.config.guests import section_of
from watchkeeper.config.schema import Config
from watchkeeper.daemon.report.gather.collect import Collector
from watchkeeper.daemon.report.gather.lives import Group, Life, grouped
from watchkeeper.daemon.report.verdict import Findings, Verdict
from watchkeeper.daemon.report.verdict import verdict as verdict_of
from watchkeeper.detectors.catalog import detector_kinds
from watchkeeper.detectors.coverage.table import Tally
from watchkeeper.detectors.engine.replay import Replay
from watchkeeper.streams.logs.base import SourceInfo
from watchkeeper.streams.logs.told import Told


@dataclass(kw_only=True)
class Result:
    """`told`: by vehicle, what its log tells beyond telemetry. `command`: the words that make the report again."""

    config: Config
    collector: Collector
    replay: Replay
    infos: Sequence[SourceInfo]
    told: Mapping[str, Told]
    command: Sequence[str]
    interrupted: bool = False

    @property
    def title(self) -> str:
        """The names of the logs."""
        return ", ".join(Path(info.path).name for info in self.infos)

    @property
    def spanned(self) -> bool:
        """Whether there was a sample at all."""
        return self.replay.t_first <= self.replay.t_last

    @property
    def t_first(self) -> float:
        """The first sample's time; 0 without one."""
        return self.replay.t_first if self.spanned else 0.0

    @property
    def t_last(self) -> float:
        """The last sample's time; 0 without one."""
        return self.replay.t_last if self.spanned else 0.0

    @property
    def seconds(self) -> float:
        """The length of the log in event time."""
        return self.t_last - self.t_first

    @cached_property
    def lives(self) -> list[Life]:
        """All alarms that are told one by one."""
        return list(self.collector.lives.all.values())

    @cached_property
    def groups(self) -> list[Group]:
        """The same by incident, the worst first."""
        return grouped(self.lives)

    @cached_property
    def callsigns(self) -> Mapping[str, str]:
        """What aircraft call themselves."""
        return dict(self.replay.pipeline.fleet.callsigns)

    @cached_property
    def tallies(self) -> Mapping[str, Tally]:
        """By detector: who was judged."""
        return self.replay.pipeline.guard.coverage.tallies()

    @cached_property
    def alarms_of(self) -> Mapping[str, list[Life]]:
        """By vehicle: the alarms that it is a subject of."""
        found: dict[str, list[Life]] = {}
        for life in self.lives:
            for name in life.first.subjects:
                found.setdefault(name, []).append(life)
        return found

    def called(self, name: str) -> str:
        """A vehicle's callsign, or its id where it has none."""
        return self.callsigns.get(name) or name

    @cached_property
    def verdict(self) -> Verdict:
        """See verdict.py."""
        pipeline = self.replay.pipeline
        names = list(self.tallies)
        sections = {name: section_of(self.config, "detectors", name) for name in names}
        return verdict_of(
            Findings(
                seconds=self.seconds,
                vehicles=len(self.collector.rows.names) + self.collector.rows.without,
                samples=pipeline.samples.total(),
                groups=self.groups,
                raised=self.replay.raised.count,
                tallies=self.tallies,
                arrival=arrival_detectors(self.replay),
                needs={name: section.warmup_s for name, section in sections.items() if hasattr(section, "warmup_s")},
                callsigns=self.callsigns,
                dropped=pipeline.drops.total(),
                interrupted=self.interrupted,
                troubles=pipeline.guard.troubles(),
                problems=[f"{Path(info.path).name}: {problem}" for info in self.infos for problem in info.problems],
            )
        )


def arrival_detectors(replay: Replay) -> frozenset[str]:
    """Detectors that look only at whether messages come: their kinds need no stream in particular."""
    declared = [detector.declaration for detector in replay.pipeline.detectors]
    known = detector_kinds()
    return frozenset(d.name for d in declared if not any(known[kind.name].needs for kind in d.kinds))
