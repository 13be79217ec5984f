"""What an evaluation says when its result would not mean anything."""


class EvaluationError(ValueError):
    """An evaluation that cannot be made; the message says why."""
