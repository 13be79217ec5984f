"""Sets of episodes: drawn from a seed, kept in a file, and known by a fingerprint of their content.

A set has the full snapshot of every network (devices, links, fault, alarms) and the seed of the noise in its answers,
so it does not depend on how networks are drawn. The file is one JSON document, gzip or not:

    {"format": "watchkeeper diagnosis episodes", "version": 1, "fingerprint": "sha256:…", "seed": 2026,
     "devices": [4, 200], "cycles": 0.5, "episodes": [{"seed": …, "devices": [[name, kind, uplink], …], …}, …]}

The fingerprint is the SHA-256 of the document without it, as JSON with sorted keys and no spaces. Used by api.py.
"""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path

import msgspec
import numpy as np

from watchkeeper.detectors.incidents.faults import Form, Hypothesis, forms_at
from watchkeeper.detectors.incidents.tools import SYMPTOMS, Symptom
from watchkeeper.detectors.incidents.topology import Device, Topology, sensor_kind
from watchkeeper.evaluation.diagnosis.simulated.draw import CYCLE_SIZE_MIN, draw_network
from watchkeeper.evaluation.diagnosis.simulated.network import SIZE_MAX, SIZE_MIN, Fault, Network
from watchkeeper.streams.foreign.files import read_json
from watchkeeper.streams.logs.base import LogError
from watchkeeper.streams.messages import KIND_OF_WORD

FORMAT, VERSION = "watchkeeper diagnosis episodes", 1
_FORMS = {form.word: form for form in Form}
_KINDS = {kind.name.lower(): kind for kind in Device}


class Snapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One episode: a network with its fault and alarms, and the seed of its answers."""

    seed: int
    devices: list[tuple[str, str, str]]
    """Name, kind and the device at the other end of the uplink; the broker, which has none, is not listed."""
    standby: list[tuple[str, str]]
    rtt_s: dict[str, float]
    lost: dict[str, float]
    form: str
    device: str
    size: float
    symptoms: list[tuple[str, str, float]]

    @classmethod
    def of(cls, network: Network, seed: int) -> Snapshot:
        """The snapshot of a network."""
        topology, fault = network.topology, network.fault
        spare = [link.split("~") for link in topology.links()[len(topology.parent) :]]
        return cls(
            seed=seed,
            devices=[(d, topology.kind[d].name.lower(), up) for d, up in topology.parent.items()],
            standby=[(a, b) for a, b in spare],
            rtt_s=network.rtt_s,
            lost=network.lost,
            form=fault.form.word,
            device=fault.device,
            size=fault.size,
            symptoms=[(s.sensor, s.word, s.size) for s in network.symptoms],
        )

    def network(self) -> Network:
        """The network again. Raises ValueError with the problem when it is none."""
        topology = Topology()
        for device, kind, uplink in self.devices:
            if device in topology or uplink not in topology or not _is_device(device, kind):
                raise ValueError(
                    f"device {device!r}: listed twice, of no known kind, or behind a device not yet listed"
                )
            topology.add(device, _KINDS[kind], uplink)
        for a, b in self.standby:
            if a not in topology or b not in topology or not topology.join(a, b):
                raise ValueError(f"standby link {a}~{b}: an unknown end, or a link that is there already")
        _check(self, topology)
        form = _FORMS[self.form]
        fault = Fault(form, self.device, Hypothesis(form, self.device).location(topology), self.size)
        return Network(topology, self.rtt_s, self.lost, fault, tuple(Symptom(*symptom) for symptom in self.symptoms))


def _is_device(name: str, kind: str) -> bool:
    sensor = kind != "sensor" or sensor_kind(name) in KIND_OF_WORD
    return kind in _KINDS and kind != "broker" and "~" not in name and sensor


def _check(snapshot: Snapshot, topology: Topology) -> None:
    if not SIZE_MIN <= len(topology) <= SIZE_MAX:
        raise ValueError(f"{len(topology)} devices, expected {SIZE_MIN} to {SIZE_MAX}")
    links = set(topology.links())
    if links != snapshot.rtt_s.keys() or links != snapshot.lost.keys():
        raise ValueError("rtt_s and lost do not name the links of the network")
    if min(snapshot.rtt_s.values()) < 0.0 or min(snapshot.lost.values()) < 0.0 or max(snapshot.lost.values()) > 1.0:
        raise ValueError("rtt_s and lost: expected seconds from 0 and shares from 0 to 1")
    form, device = _FORMS.get(snapshot.form), snapshot.device
    if device not in topology or form not in forms_at(topology.kind[device], device):
        raise ValueError(f"fault {snapshot.form!r} at {device!r}: not a fault that this device can have")
    if (form is not Form.CLOCK and snapshot.size < 0.0) or (form is Form.LOSS and snapshot.size > 1.0):
        raise ValueError(f"fault {snapshot.form!r} of size {snapshot.size}: out of range")
    sensors = {d for d, kind in topology.kind.items() if kind is Device.SENSOR}
    if not snapshot.symptoms or any(s not in sensors or word not in SYMPTOMS for s, word, _ in snapshot.symptoms):
        raise ValueError("symptoms: none, of a device that is no sensor, or with an unknown word")


class EpisodeSet(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Episodes, how they were drawn, and the fingerprint of all that."""

    format: str
    version: int
    fingerprint: str
    seed: int
    devices: tuple[int, int]
    cycles: float
    episodes: list[Snapshot]


def fingerprint(episodes: EpisodeSet) -> str:
    """The digest of everything in a set except the fingerprint that it claims."""
    content = msgspec.to_builtins(episodes)
    del content["fingerprint"]
    return "sha256:" + hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def draw_set(seed: int, count: int, devices: tuple[int, int], cycles: float) -> EpisodeSet:
    """Draw episodes: the network of each depends on the seed and its number only."""
    drawn = [_draw(seed, number, devices, cycles) for number in range(count)]
    bare = EpisodeSet(FORMAT, VERSION, "", seed, devices, cycles, drawn)
    return msgspec.structs.replace(bare, fingerprint=fingerprint(bare))


def _draw(seed: int, number: int, devices: tuple[int, int], cycles: float) -> Snapshot:
    # two seeds: noise from the seed of the network would repeat the numbers that the network was made of
    own, noise = np.random.SeedSequence((seed, number)).generate_state(2).tolist()
    rng = np.random.default_rng(own)
    size = int(rng.integers(devices[0], devices[1] + 1))
    with_cycles = bool(rng.random() < cycles) and size >= CYCLE_SIZE_MIN
    return Snapshot.of(draw_network(rng, size, cycles=with_cycles), noise)


def write_set(path: Path, episodes: EpisodeSet) -> None:
    """Write a set, packed when the name ends in .gz. The same set gives the same bytes."""
    data = msgspec.json.encode(episodes) + b"\n"
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


def read_set(path: Path) -> EpisodeSet:
    """Read a set and check it. Raises LogError."""
    found = read_json(path, EpisodeSet)
    if (found.format, found.version) != (FORMAT, VERSION):
        raise LogError(path, f"format {found.format!r} version {found.version}, expected {FORMAT!r} version {VERSION}")
    actual = fingerprint(found)
    if actual != found.fingerprint:
        raise LogError(
            path,
            f"the fingerprint does not match: the file says {found.fingerprint}, its content is {actual}. "
            "It was changed after it was written; results on it cannot be compared",
        )
    if not found.episodes:
        raise LogError(path, "no episodes")
    for number, snapshot in enumerate(found.episodes):
        try:
            snapshot.network()
        except ValueError as error:
            raise LogError(path, f"episode {number}: {error}") from error
    return found
