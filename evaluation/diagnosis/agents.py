"""Our diagnoser as a player of episodes. It sees the observation only.

An agent has `act(obs) -> action`, as in the usage example of the metrics reference; an observation in which nothing has
been done yet begins a new episode. baselines.py has other agents, adapter.py our diagnoser in another's environment.
"""

from __future__ import annotations

from typing import Any, Protocol

from watchkeeper.detectors.incidents.diagnoser import Investigation, Rule
from watchkeeper.detectors.incidents.topology import Device
from watchkeeper.evaluation.diagnosis.env import Action
from watchkeeper.evaluation.diagnosis.observation import Obs
from watchkeeper.evaluation.diagnosis.seen import Seen

# Whoever plays stands next to the broker and sees it fail.
PLAY_RULE = Rule(suspects=frozenset(Device))


class Agent(Protocol):
    """Plays an episode."""

    def act(self, obs: Obs) -> Any:
        """What to do now."""
        ...


class DiagnoserAgent:
    """Our diagnoser behind the observation."""

    def __init__(self, rule: Rule = PLAY_RULE) -> None:
        self._rule = rule
        self.case: Investigation | None = None

    def act(self, obs: Obs) -> Action:
        """See Agent."""
        seen = Seen(obs)
        if seen.first or self.case is None:
            self.case = Investigation(seen.topology, seen.symptoms, self._rule)
        elif seen.report is not None:
            self.case.learn(seen.report.tool, seen.report.target, seen.report)
        question = self.case.next_question()
        if question is not None:
            return seen.ask(*question)
        diagnosis = self.case.diagnosis()
        assert diagnosis is not None, "an episode begins with a symptom"
        return seen.answer(diagnosis.type, diagnosis.location)
