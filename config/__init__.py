"""Typed configuration: every threshold with default, range, unit and reason; loader; profiles.

The package can be called: `watchkeeper.config(profile="balanced")` is `config.call.config`. It has to be so, because an
import of any of its modules makes the package itself the attribute `config` of `watchkeeper`.
"""

import sys
from types import ModuleType
from typing import Any


class _Callable(ModuleType):
    def __call__(self, *args: Any, **overrides: Any) -> Any:
        """A configuration; see config.call.config."""
        from watchkeeper.config.call import config  # noqa: PLC0415

        return config(*args, **overrides)


sys.modules[__name__].__class__ = _Callable
