"""`make dashboards`: writes the JSON that Grafana is provisioned with, one file per dashboard, the same bytes always.

python deploy/dashboards/generate.py deploy/grafana/dashboards
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import conflict_board
import detectors_board
import evaluation_board
import fleet_board
import health_board
import integrity_board
from grafana_foundation_sdk.cog.encoder import JSONEncoder

BOARDS = {
    "fleet": fleet_board.build,
    "conflicts": conflict_board.build,
    "integrity": integrity_board.build,
    "detectors": detectors_board.build,
    "health": health_board.build,
    "evaluation": evaluation_board.build,
}


def main(folder: Path) -> None:
    """Write all dashboards."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, board in BOARDS.items():
        made = board().build()
        for number, panel in enumerate(made.panels or [], 1):
            # links and alerts point at a panel's number: the place in the file gives it
            panel.id_val = number
        text = json.dumps(made, cls=JSONEncoder, indent=2, sort_keys=True, ensure_ascii=False)
        (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
