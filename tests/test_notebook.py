"""examples/python.ipynb is what examples/python.py makes, it holds its outputs, and it runs."""

import importlib.util

import nbformat

from where import ROOT

EXAMPLES = ROOT / "examples"
SPEC = importlib.util.spec_from_file_location("notebook", EXAMPLES / "notebook.py")
assert SPEC is not None
assert SPEC.loader is not None
notebook = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(notebook)


def test_the_stored_notebook_is_made_of_its_source_and_holds_outputs() -> None:
    stored = nbformat.read(EXAMPLES / "python.ipynb", as_version=4)
    made = notebook.cells((EXAMPLES / "python.py").read_text())
    assert [(cell.cell_type, cell.source) for cell in stored.cells] == [(cell.cell_type, cell.source) for cell in made]
    code = [cell for cell in stored.cells if cell.cell_type == "code"]
    assert sum(bool(cell.outputs) for cell in code) >= len(code) - 1
    assert any("<table>" in output.get("data", {}).get("text/html", "") for cell in code for output in cell.outputs)


def test_the_notebook_runs_from_the_first_cell_to_the_last() -> None:
    run = notebook.executed((EXAMPLES / "python.py").read_text())
    outputs = [output for cell in run.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type in ("error", "stream")]
