"""What a new detector inside the project touches: a folder, a line of the catalogue, and pages that a command makes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from where import ROOT, copy_checkout

EXAMPLE = ROOT / "examples" / "watchkeeper-example" / "src" / "watchkeeper_example" / "geofence.py"
LINE = '    "geofence.detector:Geofence",\n'


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_a_detector_is_one_folder_one_line_and_generated_pages(tmp_path: Path) -> None:
    tree = copy_checkout(tmp_path / "tree")
    before = contents(tree)

    # by hand: the folder, and the line
    (tree / "detectors" / "geofence").mkdir()
    (tree / "detectors" / "geofence" / "__init__.py").write_text('"""geofence: the wrong side of a circle."""\n')
    (tree / "detectors" / "geofence" / "detector.py").write_bytes(EXAMPLE.read_bytes())
    catalogue = tree / "detectors" / "catalog.py"
    last = '    "silence.detector:Silence",\n'
    assert catalogue.read_text().count(last) == 1
    catalogue.write_text(catalogue.read_text().replace(last, last + LINE))

    # by command: the pages
    # a copy would compile every kernel again
    env = os.environ | {"PYTHONPATH": str(tree / "src"), "NUMBA_DISABLE_JIT": "1"}
    page = subprocess.run(
        [sys.executable, "-m", "watchkeeper.detectors.reference"], cwd=tree, env=env, capture_output=True, check=True
    )
    (tree / "docs" / "alarms.md").write_bytes(page.stdout)

    after = contents(tree)
    assert {name for name in after if before.get(name) != after[name]} == {
        "detectors/geofence/__init__.py",
        "detectors/geofence/detector.py",
        "detectors/catalog.py",
        "docs/alarms.md",
    }
    # and everything that asks for a declaration, a sentence, a metric or a page is content
    tests = ("tests/conformance/test_every_detector.py", "tests/detectors/test_reference.py", "-k", "geofence or page")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests]
    done = subprocess.run(words, cwd=tree, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert int(done.stdout.split(" passed")[0].split()[-1]) >= 6
