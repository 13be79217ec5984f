"""What an evaluation says when its result would not mean anything."""


class EvaluationError(ValueError):
    """An evaluation that cannot be made; the message says why."""


class AgentError(EvaluationError):
    """What another has written failed while it was evaluated; the message says which, where and how."""
