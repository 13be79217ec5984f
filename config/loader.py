"""From TOML, environment and command line to one validated `Config`, or to every problem at once.

Layers, the later one wins: schema defaults, the profile's TOML, the user's file, `WATCHKEEPER_SECTION__KEY`
variables, `overrides`. Each layer is checked by itself, so a problem names where it was written; rules between
keys are checked on the result, rules within a table of an array on that table. Called by `run`, `replay`,
`check-config` and every other caller that needs a Config.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher, get_close_matches
from functools import lru_cache
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from watchkeeper.config.detectors.kinds import unknown_zones
from watchkeeper.config.guests import SECTIONS, SETTINGS, build
from watchkeeper.config.installed import GuestError
from watchkeeper.config.masking import masked, masked_value
from watchkeeper.config.schema import Config
from watchkeeper.config.section import Section, Setting, columns, spell, word_of
from watchkeeper.config.topology import clashes_between

ENV_PREFIX = "WATCHKEEPER_"
ENV_FILE = "WATCHKEEPER_CONFIG"
ENVIRONMENT, OVERRIDES = "environment", "overrides"
UNFORESEEN = "cannot be understood"

# Keys whose values must not fall from left to right.
RISING: tuple[tuple[str, ...], ...] = (
    ("broker.reconnect_min_s", "broker.reconnect_max_s"),
    ("alertmanager.resend_s", "alertmanager.expire_s"),
    ("detectors.conflict.warning_s", "detectors.conflict.caution_s", "detectors.conflict.horizon_s"),
    ("detectors.intent.alert_n", "detectors.intent.alert_m"),
    ("detectors.intent.step_s", "detectors.intent.debounce.bridge_s"),
)


def rising() -> Iterator[tuple[str, ...]]:
    """RISING, and n of m for every debounce rule there is."""
    yield from RISING
    yield from ((key, key[:-1] + "m") for key in SETTINGS if key.endswith(".debounce.n"))


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing to put right. `value` is as written, with secrets hidden; `suggestion` the nearest valid name."""

    source: str
    key: str
    value: str
    message: str
    allowed: str = ""
    suggestion: str = ""

    def __str__(self) -> str:
        head = f"{self.source}: {self.key}" if self.key else self.source
        if self.source == ENVIRONMENT and self.key in SETTINGS:
            head += f" ({env_name(self.key)})"
        rows = {
            "problem": self.message, "value": self.value, "allowed": self.allowed, "did you mean": self.suggestion
        }  # fmt: skip
        return "\n".join([head, *(f"  {label + ':':<13} {masked(row)}" for label, row in rows.items() if row)])


class ConfigError(Exception):
    """The configuration cannot be used; `problems` says all that is wrong with it."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__(problems)
        self.problems = problems

    def __str__(self) -> str:
        return "\n".join(map(str, self.problems))


def env_name(key: str) -> str:
    """The environment variable of a key: `broker.url` is `WATCHKEEPER_BROKER__URL`."""
    return ENV_PREFIX + key.replace(".", "__").upper()


def load(
    path: Path | None, *, env: Mapping[str, str] = os.environ, overrides: Mapping[str, Any] | None = None
) -> Config:
    """The effective configuration; without a path the file named by WATCHKEEPER_CONFIG, if any. Raises ConfigError."""
    try:
        return _load(path, env, overrides or {})
    except ConfigError:
        raise
    except Exception as error:  # a value that nobody foresaw is still a bad configuration, not a broken daemon
        where = str(path or env.get(ENV_FILE) or ENVIRONMENT)
        message = f"{UNFORESEEN}: {type(error).__name__}: {error}"
        raise ConfigError([Problem(where, "", "", message, "a configuration as documented")]) from error


def _load(path: Path | None, env: Mapping[str, str], overrides: Mapping[str, Any]) -> Config:
    try:
        for setting in SETTINGS.values():
            if setting.variants is not None:
                setting.variants()
    except GuestError as error:
        raise ConfigError([Problem(error.package, "", "", str(error), "a package that works, or none")]) from error
    found = _Found()
    path = path or (Path(env[ENV_FILE]) if env.get(ENV_FILE) else None)
    if path is not None:
        found.take_table(_read_toml(path, found.problems), (), str(path))
    found.take_environment(env)
    found.take_table(overrides, (), OVERRIDES)

    profile = str(found.values.get("profile", SETTINGS["profile"].default))
    counts = _Found()
    counts.take_table(tomllib.loads(profile_file(profile).read_text()), (), f"profile {profile}")
    if "profile" in found.refused:
        found.refused.update(counts.values)  # which counts apply is not known, so no rule can judge them

    values = {key: setting.default for key, setting in SETTINGS.items()} | counts.values | found.values
    sources = counts.sources | found.sources
    problems = found.problems + [p for p in _broken_rules(values, sources, found) if p.key not in found.refused]
    if problems:
        raise ConfigError(problems)
    return build(values)


def profile_file(name: str) -> Path:
    """The TOML file of a profile: debounce counts and times, and nothing else."""
    return Path(__file__).with_name(f"{name}.toml")


@dataclass(slots=True)
class _Found:
    """What the layers say: good values by dotted key with their source, keys with a bad value, and problems.

    `known` are the keys there are: those of the whole configuration, or those of one item of an array of tables.
    """

    known: Mapping[str, Setting] = field(default_factory=lambda: SETTINGS)
    values: dict[str, Any] = field(default_factory=dict)
    sources: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    problems: list[Problem] = field(default_factory=list)

    def take_table(self, table: Mapping[str, Any], path: tuple[str, ...], source: str) -> None:
        for name, value in table.items():
            at = (*path, name)
            key = _dotted(at)
            if key in SECTIONS:
                if isinstance(value, Mapping):
                    self.take_table(value, at, source)
                else:
                    message = f"expected a table, got {word_of(value)}"
                    self.problems.append(
                        Problem(source, key, _shown(value), message, f"[{key}] with {self._names_in(at)}")
                    )
            elif key in self.known:
                self._take(self.known[key], value, source, Setting.accept)
            else:
                self._refuse_name(at, value, source)

    def take_environment(self, env: Mapping[str, str]) -> None:
        key_of = {env_name(key): key for key in SETTINGS}
        for name in sorted(env):
            if name in key_of:
                self._take(SETTINGS[key_of[name]], env[name], ENVIRONMENT, Setting.parse)
            elif name.startswith(ENV_PREFIX) and name != ENV_FILE:
                suggestion = _nearest_variable(name)
                # with no idea what it was meant to be, it may be a secret
                shown = _shown(env[name], SETTINGS[key_of[suggestion]]) if suggestion else ""
                allowed = f"{ENV_PREFIX}SECTION__KEY, two underscores between the levels"
                self.problems.append(
                    Problem(ENVIRONMENT, _dotted((name,)), shown, "no such setting", allowed, suggestion)
                )

    def _refuse_name(self, path: tuple[str, ...], value: Any, source: str) -> None:
        parent, nearest = path[:-1], _nearest_key(path, {**SETTINGS, **SECTIONS, **self.known})
        message = f"no such {'section' if isinstance(value, Mapping) else 'key'}"
        if parent:
            message += f" in [{_dotted(parent)}]"
        shown = _shown(value, SETTINGS.get(nearest))
        self.problems.append(Problem(source, _dotted(path), shown, message, self._names_in(parent), nearest))

    def _names_in(self, path: tuple[str, ...]) -> str:
        depth = len(path)
        return ", ".join(dict.fromkeys(s.path[depth] for s in self.known.values() if s.path[:depth] == path))

    def _take(self, setting: Setting, value: Any, source: str, read: Callable[[Setting, Any], Any]) -> None:
        key = setting.key
        try:
            self.values[key] = read(setting, value)
            self.sources[key] = source
        except ValueError as error:
            self.refused.add(key)
            shown, nearest = _shown(value, setting), _nearest_choice(setting, value)
            self.problems.append(Problem(source, key, shown, str(error), setting.allowed, nearest))
            return
        if setting.table is not None:
            for i, table in enumerate(self.values[key]):
                path = (*setting.path[:-1], f"{setting.path[-1]}[{i}]")
                if setting.variants is None:
                    self._check_item(setting.table, path, table, source)
                else:
                    self._check_variant(setting, setting.variants(), path, table, source)

    def _check_variant(
        self,
        setting: Setting,
        variants: Mapping[str, type[Section]],
        path: tuple[str, ...],
        table: Mapping[str, Any],
        source: str,
    ) -> None:
        """One table of an array with several types: its type, keys of other types, then what is wrong in it."""
        name = setting.tag.path[0]
        tag = replace(setting.tag, path=(*path, name))
        chooser = _Found({tag.key: tag})
        chooser.take_table({name: table[name]} if name in table else {}, path, source)
        chosen = chooser.values.get(tag.key)
        rest = {key: value for key, value in table.items() if key != name}
        owners = {key: [kind for kind, section in variants.items() if key in section.__struct_fields__] for key in rest}
        if chosen is None:
            # which keys it may have is not known, but some are no key of any type
            chooser.known = {tag.key: tag} | {s.key: s for v in variants.values() for s in _below(path, v)}
            for key in (key for key in rest if not owners[key]):
                chooser._refuse_name((*path, key), rest[key], source)
            if name not in table and tag.key not in {problem.suggestion for problem in chooser.problems}:
                chooser.problems.append(Problem(source, tag.key, "", "missing", tag.allowed))
            self.problems += chooser.problems
            return
        for key in [key for key in rest if owners[key] and chosen not in owners[key]]:
            value = rest.pop(key)
            other = next(column for column in columns(variants[owners[key][0]]) if column.key == key)
            message = f'no such key for {name} "{chosen}", only for {", ".join(map(json.dumps, owners[key]))}'
            names = ", ".join((name, *variants[chosen].__struct_fields__))
            self.problems.append(Problem(source, _dotted((*path, key)), _shown(value, other), message, names))
        self._check_item(variants[chosen], path, rest, source)

    def _check_item(self, kind: type[Section], path: tuple[str, ...], table: Mapping[str, Any], source: str) -> None:
        """One table of an array: what is wrong in it as in any section, what is missing, and what clashes."""
        own = {s.path[-1]: s for s in _below(path, kind)}
        item = _Found({s.key: s for s in own.values()})
        item.take_table(table, path, source)
        wrong = [(name, "missing") for name, s in own.items() if s.default is msgspec.NODEFAULT and name not in table]
        values = {name: item.values.get(s.key, s.default) for name, s in own.items()}
        wrong += _clashes(kind, values)
        named = item.refused | {problem.suggestion for problem in item.problems}
        for name, message in wrong:
            if (key := own[name].key) not in named:
                shown = _shown(table[name], own[name]) if name in table else ""
                item.problems.append(Problem(source, key, shown, message, own[name].allowed))
        self.problems += item.problems


def _clashes(kind: type[Section], values: dict[str, Any]) -> list[tuple[str, str]]:
    """The rules within a table that it breaks, as far as they can be judged when a key that must be given is not."""
    try:
        return list(kind(**values).clashes())
    except Exception as error:  # a rule may come from another package
        if msgspec.NODEFAULT in values.values():
            return []
        return [(next(iter(values)), f"a rule of {kind.__name__} failed: {type(error).__name__}: {error}")]


def _below(path: tuple[str, ...], kind: type[Section]) -> Iterator[Setting]:
    """The keys of a table of an array, with where that table is."""
    return (replace(column, path=(*path, *column.path)) for column in columns(kind))


def _broken_rules(values: dict[str, Any], sources: dict[str, str], found: _Found) -> Iterator[Problem]:
    def problem(key: str, message: str, allowed: str) -> Problem:
        return Problem(sources[key], key, _shown(values[key], SETTINGS[key]), message, allowed)

    for chain in rising():
        for low, high in pairwise(chain):
            if values[low] <= values[high] or {low, high} & found.refused:
                continue
            # blame what the user wrote, not the default that it clashes with
            key, other = (high, low) if low not in found.values else (low, high)
            message = " <= ".join(name.rpartition(".")[2] for name in chain) + " must hold"
            bound = f"at {'least' if key == high else 'most'} {spell(values[other])} {SETTINGS[other].unit}"
            yield problem(key, message, f"{bound}, which is {other} ({sources.get(other, 'default')})")
    telemetry, output = values["topics.telemetry"], values["topics.output"]
    if f"{output}/".startswith(f"{telemetry}/") and not {"topics.telemetry", "topics.output"} & found.refused:
        key = "topics.output" if "topics.output" in found.values else "topics.telemetry"
        message = "we would hear ourselves: each dead letter would come back as the next bad message"
        yield problem(key, message, f"an output outside {telemetry}/#, which is what we subscribe to")
    if not any(p.key.startswith("topology.vehicles[") for p in found.problems):
        limits = values["fleet.max_vehicles"], values["limits.max_gateways"]
        for value, message, allowed in clashes_between(values["topology.vehicles"], *limits):
            yield Problem(sources["topology.vehicles"], "topology.vehicles", _shown(value), message, allowed)
    kinds, zones = "detectors.conflict.kinds", "detectors.conflict.zones"
    if not any(p.key.startswith((f"{kinds}[", f"{zones}[")) for p in found.problems):
        for value, message, allowed in unknown_zones(values[kinds], values[zones]):
            yield Problem(sources[kinds], kinds, _shown(value), message, allowed)
    if not found.refused & {"webhooks", "notify"}:
        tables = [(key, item.get("name")) for key in ("webhooks", "notify") for item in values[key]]
        names = [name for _, name in tables if isinstance(name, str)]
        if twice := {name for name in names if names.count(name) > 1}:
            key = next(key for key, name in reversed(tables) if name in twice)
            # the names only: the tables have secrets in them
            shown, message = ", ".join(sorted(twice)), "two receivers of alarms have one name"
            yield Problem(sources[key], key, shown, message, "a name of its own for each")
    for network in values["http.trusted"]:
        try:
            ip_network(network, strict=False)
        except ValueError as error:
            yield problem("http.trusted", str(error), SETTINGS["http.trusted"].allowed)
    if ca_file := values["broker.ca_file"]:
        try:
            Path(ca_file).open("rb").close()
        except OSError as error:
            yield problem("broker.ca_file", f"cannot be read: {error.strerror}", "a file of PEM certificates, or empty")
    try:
        real_address = urlsplit(values["broker.url"]).port != 0
    except ValueError:
        real_address = False
    if not real_address:
        yield problem("broker.url", "no such host or port", f"{SETTINGS['broker.url'].allowed}; ports 1 to 65_535")


def _read_toml(path: Path, problems: list[Problem]) -> dict[str, Any]:
    """The file's tables; on failure none, and a problem that says where."""
    data = b""
    try:
        if path.is_fifo():
            # it would be waited for without end, and it is read again on SIGHUP
            raise OSError(errno.EINVAL, "a pipe, not a file")
        data = path.read_bytes()
        return tomllib.loads(data.decode("utf-8-sig"))
    except OSError as error:
        message = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError as error:
        message = f"{_place(data, error.start)}: byte 0x{data[error.start]:02x} is not UTF-8 text"
    except RecursionError:
        message = "arrays are nested too deeply"
    except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
        what, _, place = str(error).removesuffix(")").rpartition(" (at ")
        if place == "end of document":
            place = _place(data, len(data))
        message = f"{place}: {what}" if what else str(error)
    problems.append(Problem(str(path), "", "", message, "a TOML file in UTF-8"))
    return {}


def _place(data: bytes, offset: int) -> str:
    """Line and column of a byte, counted from 1."""
    start = data.rfind(b"\n", 0, offset) + 1
    line, column = data.count(b"\n", 0, offset) + 1, len(data[start:offset].decode(errors="replace")) + 1
    return f"line {line}, column {column}"


def _dotted(path: tuple[str, ...]) -> str:
    """A path as a TOML key; a part is quoted unless it is a bare key or an item of an array."""
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+(\[\d+])?", part) else json.dumps(part) for part in path)


def _shown(value: Any, setting: Setting | None = None) -> str:
    """A value on one short line, without secrets or control characters."""
    if setting is not None and setting.secret:
        return "(hidden)"
    # a table in the wrong place may hold a password, and so may a URL
    if isinstance(value, Mapping):
        return "{...}"
    if isinstance(value, list) and any(isinstance(item, Mapping) for item in value):
        return "[{...}]"
    line = masked_value(json.dumps(value, default=str))
    return line if len(line) <= 80 else line[:77] + "..."


def _nearest_choice(setting: Setting, value: Any) -> str:
    """The valid choice that a wrong one resembles."""
    close = get_close_matches(value.lower(), setting.choices, 1) if isinstance(value, str) else []
    return f'"{close[0]}"' if close else ""


def _nearest_key(path: tuple[str, ...], known: Iterable[str]) -> str:
    """The valid key most like an unknown one, wherever it is; of several alike, the one in the likeliest section."""
    name, wanted = path[-1].lower(), _dotted(path)
    alike = {key: _likeness(name, key.rpartition(".")[2]) for key in known}
    best = max(alike.values())
    if best < 0.6:
        return ""
    return max((key for key in alike if alike[key] == best), key=lambda key: _likeness(wanted, key))


# a script that writes a thousand tables misspells a thousand keys alike
@lru_cache(4096)
def _likeness(one: str, other: str) -> float:
    return SequenceMatcher(None, one, other).ratio()


def _nearest_variable(name: str) -> str:
    # compared without the common prefix, which would make everything look alike
    known = [env_name(key).removeprefix(ENV_PREFIX) for key in SETTINGS]
    close = get_close_matches(name.removeprefix(ENV_PREFIX).upper(), known, 1)
    return ENV_PREFIX + close[0] if close else ""
