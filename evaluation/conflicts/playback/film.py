"""Frames to a file that plays: GIF, WebP and APNG by Pillow, MP4 and WebM by ffmpeg where that is installed.

Frames are RGBA arrays of one size. Pillow keeps all of them until the end, so each is reduced to a palette as it comes.
Called by animation.py; command.py asks `missing` before the work.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from watchkeeper.evaluation.shared.arguments import missing_extra, named_file
from watchkeeper.evaluation.shared.errors import EvaluationError

Frame: TypeAlias = NDArray[np.uint8]
BY_PILLOW = {".gif": "GIF", ".webp": "WEBP", ".apng": "PNG"}
# H.264 and VP9 are what browsers and slides play; players expect colours at half the resolution.
BY_FFMPEG = {
    ".mp4": ("-c:v", "libx264", "-pix_fmt", "yuv420p", "-movflags", "+faststart"),
    ".webm": ("-c:v", "libvpx-vp9", "-pix_fmt", "yuv420p", "-b:v", "0", "-crf", "32"),
}
ENDINGS = (*BY_PILLOW, *BY_FFMPEG)
# By median cut a few red pixels would become orange; an octree keeps colours that are rare.
COLOURS = 128


def animation_file(word: str) -> Path:
    """Type of an argument that names an animation."""
    return named_file(word, ENDINGS)


def missing(path: Path) -> str | None:
    """What is not installed that this file needs; None when nothing is."""
    if path.suffix.lower() in BY_FFMPEG and shutil.which("ffmpeg") is None:
        return f"{path}: needs ffmpeg, which is not installed (Debian: apt install ffmpeg); a .gif needs none"
    return missing_extra("--animation", "matplotlib", "plots")


def write_film(path: Path, frames: Iterator[Frame], per_s: int) -> int:
    """Write the file; how many frames it has. Raises EvaluationError where ffmpeg fails."""
    return (_by_pillow if path.suffix.lower() in BY_PILLOW else _by_ffmpeg)(path, frames, per_s)


def _by_pillow(path: Path, frames: Iterator[Frame], per_s: int) -> int:
    from PIL import Image  # noqa: PLC0415 - comes with the extra

    kept = [
        Image.fromarray(frame).convert("RGB").quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE)
        for frame in frames
    ]
    kept[0].save(
        path, BY_PILLOW[path.suffix.lower()], save_all=True, append_images=kept[1:], duration=round(1000 / per_s),
        loop=0,
    )  # fmt: skip
    return len(kept)


def _by_ffmpeg(path: Path, frames: Iterator[Frame], per_s: int) -> int:
    first = next(frames)
    high, wide = first.shape[:2]
    raw = ("-f", "rawvideo", "-pix_fmt", "rgba", "-s", f"{wide}x{high}", "-r", str(per_s), "-i", "-")
    command = ["ffmpeg", "-y", "-loglevel", "error", *raw, *BY_FFMPEG[path.suffix.lower()], str(path.absolute())]
    n = 0
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as program:
        assert program.stdin is not None
        assert program.stderr is not None
        try:
            for frame in chain((first,), frames):
                program.stdin.write(frame.tobytes())
                n += 1
            program.stdin.close()
        except BrokenPipeError:
            pass  # it has ended, and says why
        said = program.stderr.read().decode(errors="replace").strip()
    if program.returncode:
        raise EvaluationError(f"{path}: ffmpeg failed: {said.splitlines()[-1] if said else program.returncode}")
    return n
