"""Makes python.ipynb from python.py and runs it: `make notebook`, or `python examples/notebook.py [OUT.ipynb]`.

Cells are separated by `# %%`, as editors have it; text cells are `# %% [markdown]` and comments.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient

SOURCE = Path(__file__).with_name("python.py")


def cells(text: str) -> list[nbformat.NotebookNode]:
    """The cells of a script, numbered, so that the same source gives the same notebook."""
    found = []
    for number, part in enumerate(re.split(r"^# %%", text, flags=re.MULTILINE)[1:]):
        head, _, body = part.partition("\n")
        if "[markdown]" in head:
            cell = nbformat.v4.new_markdown_cell(re.sub(r"^# ?", "", body.strip(), flags=re.MULTILINE))
        else:
            cell = nbformat.v4.new_code_cell(body.strip())
        cell.id = f"cell-{number}"
        found.append(cell)
    return found


def executed(text: str) -> nbformat.NotebookNode:
    """The notebook with its outputs; raises CellExecutionError where a cell fails."""
    notebook = nbformat.v4.new_notebook(cells=cells(text))
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False).execute()
    # what differs from one machine to the next tells a reader nothing
    notebook.metadata.pop("language_info", None)
    return notebook


if __name__ == "__main__":
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else SOURCE.with_suffix(".ipynb")
    nbformat.write(executed(SOURCE.read_text()), out)
    print(out)
