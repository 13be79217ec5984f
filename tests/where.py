"""Where the tests find things: the checkout, its pages, and recordings that lie outside of it."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
# `make data` fetches these.
SAMPLES = ROOT / "data" / "adsb" / "traffic" / "data" / "samples"
SHARED = ROOT.parent / "shared"
