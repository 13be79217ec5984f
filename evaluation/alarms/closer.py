"""The closer look at the alarms in words: by look-ahead, by airspace, calibration, and what another setting changes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from watchkeeper.evaluation.alarms.against import differences
from watchkeeper.evaluation.alarms.breakdown import Airspace, LookAhead
from watchkeeper.evaluation.alarms.calibration import Calibration
from watchkeeper.evaluation.alarms.report import NONE, percent

if TYPE_CHECKING:
    from watchkeeper.evaluation.alarms.api import Evaluation
    from watchkeeper.evaluation.alarms.verdicts import AlarmVerdict

# Alarms of two runs that differ by less are the same.
_SAME_S = 0.5


def look_ahead_table(rows: Sequence[LookAhead]) -> str:
    """Losses and alarms by look-ahead time."""
    head = (
        f"{'':10}{'losses':>8}{'alarmed':>10}{'straight':>10}   {'alarms that predicted it so far ahead':>37}\n"
        f"{'ahead':>10}{'in view':>8}{'by then':>10}{'line':>10}   {'all':>10}{'true':>9}{'valid':>9}{'nuisance':>9}"
    )
    return "\n".join(
        (
            head,
            *(
                f"{row.ahead_s:8.0f} s{row.losses:8,}{_share(row.alarmed, row.losses):>10}"
                f"{_share(row.straight, row.losses):>10}   "
                f"{row.predicted:10,}{row.true:9,}{row.valid:9,}{row.nuisance:9,}"
                for row in rows
            ),
        )
    )


def airspace_table(rows: Sequence[Airspace]) -> str:
    """The figures by band of altitude."""
    head = (
        f"{'altitude':22}{'losses':>8}{'in view':>9}{'late or missed':>16}{'pairs':>8}{'nuisance':>10}{'95 %':>18}"
        f"{'alarms':>8}{'nuisance':>10}"
    )
    lines = []
    for row in rows:
        band = (
            f"below {row.ceiling_ft:,.0f} ft"
            if row.floor_ft is None
            else f"from {row.floor_ft:,.0f} ft"
            if row.ceiling_ft is None
            else f"{row.floor_ft:,.0f} to {row.ceiling_ft:,.0f} ft"
        )
        bounds = row.pairs_nuisance_share_95
        interval = f"{percent(bounds[0])} to {percent(bounds[1])}" if bounds else NONE
        lines.append(
            f"{band:22}{row.losses:8,}{row.in_view:9,}{row.late_or_missed:16,}{row.pairs_alarmed:8,}"
            f"{_share(row.pairs_nuisance, row.pairs_alarmed):>10}{interval:>18}{row.alarms:8,}{row.nuisance_alarms:10,}"
        )
    return "\n".join((head, *lines))


def calibration_table(found: Calibration) -> str:
    """One bin a line: what was said, what came true."""
    head = f"{'probability':>12}{'statements':>12}{'pairs':>7}{'said':>8}{'came true':>11}{'95 %':>16}"
    lines = [
        f"{f'{b.low:g} to {b.high:g}':>12}{b.statements:12,}{b.pairs:7,}{b.said:8.2f}{b.came_true:11.2f}"
        f"{'–' if b.came_true_95 is None else f'{b.came_true_95[0]:.2f} to {b.came_true_95[1]:.2f}':>16}"
        f"{ {True: '', False: '  outside', None: '  too few pairs'}[b.right] }"
        for b in found.bins
    ]
    brier = NONE if found.brier is None else f"{found.brier:.4f}"
    base = NONE if found.base_rate is None else f"{found.base_rate:.3f}"
    return "\n".join(
        (head, *lines, f"Brier score {brier} over {found.statements:,} statements; {base} of them came true")
    )


def difference_lines(one: Evaluation, other: Evaluation) -> Iterator[str]:
    """Every alarm that the two runs do not raise alike, and how many they do."""
    found = differences(one.alarms, other.alarms)
    same = [d for d in found if d.earlier_s is not None and abs(d.earlier_s) < _SAME_S]
    only_one, only_other = sum(d.other is None for d in found), sum(d.one is None for d in found)
    yield (
        f"{len(same):,} alarms are the same, {only_one:,} only with the first configuration, {only_other:,} only with "
        f"the second, {len(found) - len(same) - only_one - only_other:,} at another time"
    )
    for d in found:
        if d in same:
            continue
        if d.one is not None and d.other is not None and d.earlier_s is not None:
            word = f"{abs(d.earlier_s):.0f} s {'earlier' if d.earlier_s > 0 else 'later'} with the first"
            yield f"{'~'.join(d.pair):22}{_at(d.one, one):>9}  {word}; {d.one.verdict}"
        elif d.one is not None:
            yield f"{'~'.join(d.pair):22}{_at(d.one, one):>9}  only with the first; {d.one.verdict}"
        elif d.other is not None:
            yield f"{'~'.join(d.pair):22}{_at(d.other, other):>9}  only with the second; {d.other.verdict}"


def _at(v: AlarmVerdict, e: Evaluation) -> str:
    return f"{v.alarm.t_raised - e.t_first:.0f}"


def _share(part: int, whole: int) -> str:
    return percent(part / whole if whole else None)
