"""The pieces that our Grafana dashboards are made of: a board with its variables, a graph, a number, a table.

Expressions are PromQL in which `{@` stands for the chosen daemons: `watchkeeper_vehicles{@}` becomes
`watchkeeper_vehicles{instance=~"$instance"}`. Built with Grafana's own grafana-foundation-sdk, so the JSON has the
shape that Grafana itself declares (schema version 41: Grafana 11.6 and later).
"""

from __future__ import annotations

from dataclasses import dataclass

from grafana_foundation_sdk.builders import common, dashboard, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.builder import Builder
from grafana_foundation_sdk.models import common as shapes
from grafana_foundation_sdk.models import dashboard as model
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

TAG = "watchkeeper"
# What browsers call the live page: a text field on top of each dashboard, which its links use.
PAGE = "http://127.0.0.1:9108"
SOURCE = model.DataSourceRef(type_val="prometheus", uid="${datasource}")
# A watch is looked at now: half an hour, and fresh every ten seconds.
SINCE, REFRESH = "now-30m", "10s"
COLOURS = {"advisory": "blue", "caution": "orange", "warning": "red"}
GOOD_BAD = ((None, "red"), (1.0, "green"))
NONE_SOME = ((None, "green"), (1.0, "red"))

Steps = tuple[tuple[float | None, str], ...]


@dataclass(frozen=True, slots=True)
class Query:
    """An expression and what its series are called; `{{kind}}` in a legend is the label of that name."""

    expr: str
    legend: str = ""


def board(uid: str, title: str, about: str, *, instances: str = "watchkeeper_build_info") -> dashboard.Dashboard:
    """An empty dashboard; `instances` is the metric that says which targets there are."""
    where = (
        dashboard.QueryVariable("instance")
        .label("Daemon")
        .datasource(SOURCE)
        .query(f"label_values({instances}, instance)")
        .refresh(model.VariableRefresh.ON_TIME_RANGE_CHANGED)
        .sort(model.VariableSort.ALPHABETICAL_ASC)
        .multi(True)
        .include_all(True)
        .current(model.VariableOption(selected=True, text="All", value="$__all"))
    )
    return (
        dashboard.Dashboard(title)
        .uid(uid)
        .description(about)
        .tags([TAG])
        .time(SINCE, "now")
        .refresh(REFRESH)
        .timezone("utc")
        .tooltip(model.DashboardCursorSync.CROSSHAIR)
        .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus"))
        .with_variable(where)
        .with_variable(dashboard.TextBoxVariable("page").label("Live page").default_value(PAGE))
        .annotation(raised())
        .link(dashboard.DashboardLink("Live page").type(model.DashboardLinkType.LINK).url("${page}").target_blank(True))
        .link(
            dashboard.DashboardLink("Watchkeeper")
            .type(model.DashboardLinkType.DASHBOARDS)
            .tags([TAG])
            .as_dropdown(True)
            .include_vars(True)
            .keep_time(True)
        )
    )


def raised() -> dashboard.AnnotationQuery:
    """A mark in every graph where alarms were raised."""
    return (
        dashboard.AnnotationQuery()
        .name("Alarms raised")
        .datasource(SOURCE)
        .enable(True)
        .icon_color("orange")
        .expr(
            "sum by (kind) (increase(watchkeeper_alarm_events_total"
            '{instance=~"$instance", state="raised"}[$__rate_interval])) > 0'
        )
    )


def target(query: Query, number: int, *, instant: bool = False) -> prometheus.Dataquery:
    """The query as Grafana sends it."""
    expr = query.expr.replace("{@", '{instance=~"$instance"')
    built = prometheus.Dataquery().expr(expr).legend_format(query.legend).ref_id(chr(ord("A") + number))
    built.datasource(SOURCE)
    return built.instant().format(PromQueryFormat.TABLE) if instant else built.range()


def at_this_time() -> dashboard.DashboardLink:
    """From a graph to the live page at the end of the range that is shown."""
    return (
        dashboard.DashboardLink("Live page at the end of this range")
        .type(model.DashboardLinkType.LINK)
        .url("${page}/#t=${__to:date:seconds}")
        .target_blank(True)
    )


def limits(steps: Steps) -> dashboard.ThresholdsConfig:
    """Colours from these values on; None is the lowest."""
    return (
        dashboard.ThresholdsConfig()
        .mode(model.ThresholdsMode.ABSOLUTE)
        .steps([model.Threshold(value=value, color=colour) for value, colour in steps])
    )


def graph(
    title: str,
    about: str,
    *queries: Query,
    unit: str = "short",
    width: int = 12,
    stacked: bool = False,
    floor: bool = True,
) -> timeseries.Panel:
    """Lines over time; `floor`: the axis starts at 0."""
    panel = (
        timeseries.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(8)
        .line_width(1)
        .fill_opacity(30 if stacked else 8)
        .show_points(shapes.VisibilityMode.NEVER)
        .legend(
            common.VizLegendOptions()
            .display_mode(shapes.LegendDisplayMode.TABLE)
            .placement(shapes.LegendPlacement.BOTTOM)
            .show_legend(True)
            .calcs(["lastNotNull", "max"])
        )
        .tooltip(common.VizTooltipOptions().mode(shapes.TooltipDisplayMode.MULTI).sort(shapes.SortOrder.DESCENDING))
    )
    if floor:
        panel.min(0)
    if stacked:
        panel.stacking(common.StackingConfig().mode(shapes.StackingMode.NORMAL))
    for name, colour in COLOURS.items():
        fixed = {"mode": "fixed", "fixedColor": colour}
        panel.override_by_name(name, [model.DynamicConfigValue(id_val="color", value=fixed)])
    for number, query in enumerate(queries):
        panel.with_target(target(query, number))
    panel.links([at_this_time()])
    return panel


def number(
    title: str, about: str, query: Query, *, unit: str = "short", width: int = 4, steps: Steps = ((None, "text"),),
    words: dict[str, str] | None = None, decimals: int | None = None,
) -> stat.Panel:  # fmt: skip
    """One figure, now. `words` says what a value means."""
    panel = (
        stat.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .unit(unit)
        .span(width)
        .height(4)
        .thresholds(limits(steps))
        .color_mode(shapes.BigValueColorMode.VALUE)
        .graph_mode(shapes.BigValueGraphMode.NONE if words else shapes.BigValueGraphMode.AREA)
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]).values(False))
        .no_value("–")
        .with_target(target(query, 0))
    )
    if decimals is not None:
        panel.decimals(decimals)
    if words:
        options = {value: model.ValueMappingResult(text=word) for value, word in words.items()}
        panel.mappings([model.ValueMap(options=options)])
    return panel


def listing(title: str, about: str, query: Query, *, width: int = 24, hidden: tuple[str, ...] = ()) -> table.Panel:
    """The labels of each series and its value, now."""
    drop = dict.fromkeys(("Time", "__name__", "job", *hidden), True)
    tidy = model.DataTransformerConfig(id_val="organize", options={"excludeByName": drop})
    return (
        table.Panel()
        .title(title)
        .description(about)
        .datasource(SOURCE)
        .span(width)
        .height(8)
        .with_target(target(query, 0, instant=True))
        .with_transformation(tidy)
    )


def section(made: dashboard.Dashboard, title: str, *panels: Builder[model.Panel]) -> None:
    """Add these panels below a heading, or without one."""
    if title:
        made.with_row(dashboard.Row(title))
    for panel in panels:
        made.with_panel(panel)
