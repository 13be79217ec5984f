"""The written reference says what the schema says."""

import tomllib

from watchkeeper.config.guests import SETTINGS
from watchkeeper.config.loader import load
from watchkeeper.config.reference import config_toml, reference_markdown
from watchkeeper.config.schema import DEFAULT
from watchkeeper.config.section import columns

from where import DOCS

PAGE = DOCS / "configuration.md"


def test_page_is_fresh() -> None:
    # when this fails: python -m watchkeeper.config.reference > docs/configuration.md
    assert PAGE.read_text(encoding="utf-8") == reference_markdown()


def test_page_has_every_key_with_range_unit_and_reason() -> None:
    page = reference_markdown()
    arrays = [s for s in SETTINGS.values() if s.table is not None]
    tables = [kind for s in arrays for kind in (s.variants().values() if s.variants else [s.table])]
    for s in (*SETTINGS.values(), *(column for kind in tables for column in columns(kind))):
        rows = [line for line in page.splitlines() if line.startswith(f"| `{s.path[-1]}` ") and s.reason in line]
        assert any(s.span in row and f"| {s.unit} |" in row for row in rows), s.key


def test_shown_configuration_is_valid_toml_with_units_and_without_secrets() -> None:
    shown = config_toml(load(None, env={"WATCHKEEPER_BROKER__PASSWORD": "hunter2"}))
    assert "hunter2" not in shown
    assert "separation_nm = 5.0  # NM" in shown
    assert tomllib.loads(shown)["detectors"]["los"]["debounce"]["n"] == DEFAULT.detectors.los.debounce.n
