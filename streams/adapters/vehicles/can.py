"""A CAN bus, live through any interface of python-can or from its recordings (extra `can`, with cantools).

Which messages mean what says a mapping file, see can_map.py. A frame on the way here is a line as candump writes it,

    (1700000000.123456) can0 1F334455#1122334455667788

so a live bus and a candump log are the same to this adapter; .asc, .blf and .trc files are read by python-can.

A sample is made when its message `on` arrives. It takes along the values of other messages since the sample before, if
they are `hold_s` old at most, and each value once: a repeated value would look younger than it is. Without all of its
required fields it is none, and is counted as missing_field. Frames that no sample uses are passed over.

Times are those of the frames. Where they do not count from 1970, live the earliest arrival says when they began
(senderclock.py), and a recording begins where it begins.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from watchkeeper.config.adapters.can import Can as Settings
from watchkeeper.streams.adapters.base import AdapterDeclaration, FeedLog, LineFeed, Sample, Way, problems_of, within
from watchkeeper.streams.adapters.rows import Rows
from watchkeeper.streams.adapters.senderclock import SenderClock
from watchkeeper.streams.adapters.vehicles.can_map import CanMap, load_map
from watchkeeper.streams.batch import Batch
from watchkeeper.streams.foreign.library import reason
from watchkeeper.streams.logs.base import Format, LogError, SourceInfo
from watchkeeper.streams.messages import VALUE_MAX, Drop

# A frame of CAN FD has 64 bytes.
LINE_MAX = 256
# Seconds since 1970 that no bus has been up for.
_UNIX_S = 1e9
MAP_NAME = "can.toml"
PIECE_FRAMES = 2000
_EXTENDED_DIGITS = 8
# A busy bus is taken in by the handful.
FRAMES_AT_ONCE = 500


class Can(LineFeed):
    """One bus; see adapters/base.py."""

    def __init__(self, *, via: str = "", map: str) -> None:  # noqa: A002  the name of the setting
        super().__init__(LINE_MAX)
        self.refused: Counter[str] = Counter()
        self._map: CanMap = load_map(Path(map))
        self._messages = {
            (message.frame_id, message.is_extended_frame): message
            for message in self._map.database.messages
            if message.name in self._map.messages
        }
        self._rows = Rows(via)
        self._clock = SenderClock()
        # message, signal: time and value, for each sample that waits for it
        self._heard: list[dict[str, tuple[float, float]]] = [{} for _ in self._map.samples]

    def take(self) -> Batch | None:
        """See Feed."""
        return self._rows.take()

    def frame(self, seconds: float, frame_id: int, extended: bool, data: bytes, now: float) -> None:
        """One frame."""
        message = self._messages.get((frame_id, extended))
        if message is None:
            return
        try:
            decoded = message.decode(data, decode_choices=False)
            # a signal may have thousands of bits, if its database says so
            values = {name: float(value) for name, value in decoded.items() if not isinstance(value, (str, dict, list))}
        # cantools raises errors of its own, and those of the library that unpacks
        except Exception:
            self.refused[Drop.TYPE] += 1
            return
        t = seconds if seconds > _UNIX_S or math.isnan(now) else self._clock.time(seconds, now)
        named = {
            name: values[signal]
            for signal, name in self._map.signals.get(message.name, {}).items()
            if abs(values.get(signal, math.nan)) <= VALUE_MAX
        }
        if named:
            self._rows.add_signals(self._map.name, t, named)
        for sample, heard in zip(self._map.samples, self._heard, strict=True):
            for field, source in sample.fields.items():
                if source.message == message.name and source.signal in values:
                    heard[field] = t, values[source.signal] * source.scale + source.offset
            if sample.on == message.name:
                fresh = {field: value for field, (then, value) in heard.items() if abs(t - then) <= sample.hold_s}
                heard.clear()
                if any(all(field in fresh for field in needed) for needed in sample.needs):
                    self._rows.add(sample.kind, sample.name, t, fresh)
                else:
                    self.refused[Drop.MISSING] += 1

    def _line(self, line: bytes | None, now: float) -> None:
        if line is None:
            self.refused[Drop.SIZE] += 1
            return
        if not line.strip():
            return
        try:
            stamp, _channel, frame = line.split()[:3]
            written, _, data = frame.partition(b"#")
            if data[:1] in (b"R", b"r"):
                return  # a request, without data
            if data[:1] == b"#":
                data = data[2:]  # CAN FD: a digit of flags
            seconds = float(stamp.strip(b"()"))
            if not math.isfinite(seconds):
                raise ValueError(stamp)
            self.frame(seconds, int(written, 16), len(written) == _EXTENDED_DIGITS, bytes.fromhex(data.decode()), now)
        except ValueError:
            self.refused[Drop.SYNTAX] += 1


def line_of(message: Any) -> bytes:
    """A frame of python-can as a line."""
    digits = _EXTENDED_DIGITS if message.is_extended_id else 3
    sign = "##0" if message.is_fd else "#R" if message.is_remote_frame else "#"
    channel = str(message.channel or "can").replace(" ", "_")
    frame = f"{message.arbitration_id:0{digits}X}{sign}{bytes(message.data).hex().upper()}"
    return f"({message.timestamp:.6f}) {channel} {frame}\n".encode()


class BusLine:
    """A live bus as lines; see adapters/base.py. Frames that are there are given together."""

    def __init__(self, bus: Any) -> None:
        self._bus = bus

    def read(self, wait_s: float) -> bytes:
        """See Line."""
        from can import CanError  # noqa: PLC0415

        lines: list[bytes] = []
        try:
            while len(lines) < FRAMES_AT_ONCE and (message := self._bus.recv(0 if lines else wait_s)) is not None:
                lines.append(line_of(message))
        except CanError as error:
            raise OSError(str(error)) from error
        return b"".join(lines)

    def close(self) -> None:
        """See Line."""
        self._bus.shutdown()


def open_bus(source: Settings) -> BusLine:
    """The bus of a live source. Raises OSError."""
    from can import Bus, CanError  # noqa: PLC0415  comes with the extra `can`

    where = urlsplit(source.url)
    rates = parse_qs(where.query).get("bitrate")
    options: dict[str, Any] = {"bitrate": int(rates[0])} if rates else {}
    try:
        return BusLine(Bus(unquote(where.path).lstrip("/"), interface=where.netloc, **options))
    except CanError as error:
        raise OSError(str(error)) from error


def open_candump(path: Path) -> FeedLog:
    """A recording of candump. Raises LogError."""
    mapping = _map_beside(path)
    _make(path, mapping)
    return FeedLog(path, "can", lambda: _make(path, mapping))


def open_can(path: Path) -> CanLog:
    """A recording that python-can reads. Raises LogError."""
    mapping = _map_beside(path)
    _make(path, mapping)
    return CanLog(path, mapping)


def _make(path: Path, mapping: Path) -> Can:
    try:
        import can  # noqa: F401, PLC0415  needed for the recordings, and for live buses

        return Can(map=str(mapping))
    except ModuleNotFoundError as error:
        raise LogError(path, f'a CAN recording needs {error.name}: pip install "watchkeeper[can]"') from error


def _map_beside(path: Path) -> Path:
    """The mapping for a recording: FILE.can.toml, or can.toml in its folder."""
    for mapping in (path.with_name(f"{path.name}.{MAP_NAME}"), path.with_name(MAP_NAME)):
        if mapping.exists():
            return mapping
    raise LogError(
        path, f"no mapping says what its messages mean: neither {path.name}.{MAP_NAME} nor {MAP_NAME} is next to it"
    )


class CanLog:
    """A recording as .asc, .blf or .trc."""

    def __init__(self, path: Path, mapping: Path) -> None:
        self.path = path
        self.position = 0
        self._mapping = mapping
        self._size = path.stat().st_size
        self._refused: Counter[str] = Counter()
        self._cut = ""

    def batches(self, chunk: int = 8192, *, start: float = -math.inf, stop: float = math.inf) -> Iterator[Batch]:  # noqa: ARG002
        """Samples in the order of the file."""
        import can  # noqa: PLC0415

        feed = _make(self.path, self._mapping)
        self._refused, self._cut, count = feed.refused, "", 0
        absolute = {"relative_timestamp": False} if self.path.suffix.lower() == ".asc" else {}
        try:
            with can.LogReader(self.path, **absolute) as frames:
                for frame in frames:
                    if not (frame.is_error_frame or frame.is_remote_frame):
                        feed.frame(
                            frame.timestamp, frame.arbitration_id, frame.is_extended_id, bytes(frame.data), math.nan
                        )
                    count += 1
                    if count % PIECE_FRAMES == 0:
                        yield from within(feed.take(), start, stop)
        # python-can raises whatever its parsing runs into
        except Exception as error:
            self._cut = f"cut off or damaged: {reason(error)}"
        self.position = self._size
        yield from within(feed.take(), start, stop)

    def info(self) -> SourceInfo:
        """Format, size, and what was refused."""
        problems = problems_of(self._cut, "frames", self._refused)
        return SourceInfo(self.path, "can", self._size, problems, None, self._refused.total())


CAN = AdapterDeclaration(
    name="can",
    help="CAN buses through python-can, and recordings of them",
    docs="adapters/can.md",
    settings=Settings,
    feed=f"{__name__}:Can",
    takes=("via", "map"),
    ways=(Way.BUS,),
    line=f"{__name__}:open_bus",
    sample=Sample(
        data=b"(1700000000.000000) can0 100#F401000050C3\n(1700000000.001000) can0 101#0A0000000000\n",
        settings={"url": "can://socketcan/can0", "map": "can.toml"},
        files={
            "can.toml": """\
dbc = "vehicle.dbc"
id = "car1"

[[samples]]
kind = "imu"
on = "Gyro"
[samples.fields]
imu_ax = "Accel.X"
imu_ay = "Accel.Y"
imu_az = "Accel.Z"
imu_wx = "Gyro.X"
imu_wy = "Gyro.Y"
imu_wz = "Gyro.Z"
""",
            "vehicle.dbc": """\
VERSION ""
BU_: ECU
BO_ 256 Accel: 6 ECU
 SG_ X : 0|16@1- (0.001,0) [-32|32] "m/s2" ECU
 SG_ Y : 16|16@1- (0.001,0) [-32|32] "m/s2" ECU
 SG_ Z : 32|16@1- (0.001,0) [-32|32] "m/s2" ECU
BO_ 257 Gyro: 6 ECU
 SG_ X : 0|16@1- (0.001,0) [-32|32] "rad/s" ECU
 SG_ Y : 16|16@1- (0.001,0) [-32|32] "rad/s" ECU
 SG_ Z : 32|16@1- (0.001,0) [-32|32] "rad/s" ECU
""",
        },
    ),
    needs={"can": "python-can"},
    extra="watchkeeper[can]",
    formats=(
        Format("can", f"{__name__}:open_candump", (".log", ".log.gz"), holds=(b"(", b") ", b"#")),
        Format("can", f"{__name__}:open_can", (".asc", ".blf", ".trc")),
    ),
)
