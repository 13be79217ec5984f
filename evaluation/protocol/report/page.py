"""The report: one HTML file that needs nothing else, failures first, plots inside. Needs matplotlib (extra `plots`)."""

from __future__ import annotations

from base64 import b64encode
from html import escape
from pathlib import Path

from watchkeeper.evaluation.protocol.report.plots import pictures
from watchkeeper.evaluation.protocol.report.text import Table, markdown, tables
from watchkeeper.evaluation.protocol.study import Result

STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; max-width: 75rem; margin: 2rem auto; padding: 0 1rem; color: #222 }
h2 { margin-top: 2.2rem; font-size: 1.15rem } table { border-collapse: collapse; font-size: 0.82rem }
div.wide { overflow-x: auto } th, td { padding: 0.15rem 0.6rem; text-align: right; white-space: nowrap }
th:first-child, td:first-child { text-align: left } th { border-bottom: 1px solid #888; vertical-align: bottom }
tr:nth-child(even) td { background: #f5f7f9 } td.bad { color: #b3400a; font-weight: 600 } img { max-width: 100% }
"""


def write_report(result: Result, folder: Path) -> Path:
    """Write report.html and tables.md into a folder; the report's path."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tables.md").write_text(markdown(result))
    shown = list(tables(result))
    s = result.settings
    setup = (
        f"{s.get('flights', '')}; {s['attacks']} attacks of {s['families']} families, {s['repeats']} onsets each; "
        f"profile {s['profile']} ({s['debounce']['n']} epochs in a row); {s['features']} features; "
        f"{s['bootstrap']['resamples']} resamples by flight."
    )
    # what failed, what was asked for; then the pictures; then everything
    body = [_table(table) for table in shown[:2]]
    body += [
        f'<h2>{escape(caption)}</h2><img alt="{escape(caption)}" src="data:image/png;base64,{b64encode(png).decode()}">'
        for caption, png in pictures(result)
    ]
    body += [_table(table) for table in shown[2:]]
    if result.left_out:
        body.append(f"<p>Left out, because no sample would have changed: {escape('; '.join(result.left_out))}.</p>")
    page = (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>GPS/IMU evaluation</title>'
        f"<style>{STYLE}</style><h1>GPS against IMU: the evaluation protocol</h1><p>{escape(setup)}</p>{''.join(body)}"
        "<p>Definitions: docs/evaluation/protocol.md. The same figures as data: metrics.json.</p></html>\n"
    )
    path = folder / "report.html"
    path.write_text(page)
    return path


def _table(table: Table) -> str:
    title, heads, rows = table
    head = "".join(f"<th>{escape(h)}</th>" for h in heads)
    lines = "".join(f"<tr>{''.join(_cell(cell) for cell in row)}</tr>" for row in rows)
    empty = "" if rows else "<p>none</p>"
    return f'<h2>{escape(title)}</h2><div class="wide"><table><tr>{head}</tr>{lines}</table></div>{empty}'


def _cell(text: str) -> str:
    bad = ' class="bad"' if text == "NO" else ""
    return f"<td{bad}>{escape(text)}</td>"
