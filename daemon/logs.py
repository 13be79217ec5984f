"""Structured logs on standard error: one line per event, a short message and key=value fields.

    log.info("connected", extra=kv(url="mqtt://127.0.0.1:1883"))

gives `2026-01-02T03:04:05.678Z info    connected url=mqtt://127.0.0.1:1883 logger=daemon.app`, or one JSON object
per line with `log.format = "json"`. Only our own loggers are touched; a program that embeds us keeps its own.
"""

from __future__ import annotations

import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

import msgspec

from watchkeeper.config.masking import masked
from watchkeeper.config.schema import Log

ROOT = "watchkeeper"


def kv(**fields: Any) -> dict[str, Any]:
    """The fields of a log line, as the `extra` of a logging call."""
    return {"fields": fields}


def _stamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> dict[str, Any]:
    given: dict[str, Any] = getattr(record, "fields", {})
    return {**given, "logger": record.name.removeprefix(ROOT + ".")}


def _quote(value: Any) -> str:
    """A value as one word; what would break the line or the field is quoted as JSON."""
    word = f"{value:.6g}" if isinstance(value, float) else str(value)
    plain = word != "" and word.isprintable() and not any(c in word for c in ' "=')
    return word if plain else msgspec.json.encode(word).decode()


class TextLines(logging.Formatter):
    """For people: time, level, message, key=value."""

    def format(self, record: logging.LogRecord) -> str:
        """One line, and the traceback below it when there is one."""
        fields = " ".join(f"{key}={_quote(value)}" for key, value in _fields(record).items())
        # a message may quote bytes from the network: no line of the log is theirs to forge
        message = record.getMessage().replace("\n", "\\n").replace("\r", "\\r")
        line = f"{_stamp(record)} {record.levelname.lower():<7} {message} {fields}"
        # an address may come from anywhere, also from the error of a library: no secret of it goes into the log
        return masked(f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line)


class JsonLines(logging.Formatter):
    """For log collectors: one JSON object per line."""

    def format(self, record: logging.LogRecord) -> str:
        """One line; a traceback is a field of it."""
        line = {"time": _stamp(record), "level": record.levelname.lower(), "message": record.getMessage()}
        line |= _fields(record)
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return masked(msgspec.json.encode(line, enc_hook=str).decode())


def set_up(settings: Log, stream: TextIO | None = None) -> None:
    """Send our logs to standard error (or `stream`) as the settings say; calling it again replaces the settings."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if settings.format == "json" else TextLines())
    logger = logging.getLogger(ROOT)
    logger.handlers = [handler]
    logger.setLevel(settings.level.upper())
    logger.propagate = False
