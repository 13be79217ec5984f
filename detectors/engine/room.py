"""Room for newcomers: what the pipeline lets go when the fleet or the table of gateways is nearly full.

    make_room(pipeline, t) -> events     at each tick: alarms of vehicles that are forgotten end as "forgotten"
    full(pipeline) -> sentences          what is full, or so nearly that newcomers are turned away, for /readyz

Vehicles with an active alarm stay, and so do declared vehicles and gateways. A `watch` alarm does not count: it says
that little is known of somebody, and anybody can have one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from watchkeeper.detectors.alarms.events import AlarmEvent
from watchkeeper.detectors.coverage.declaration import WATCH
from watchkeeper.detectors.fleet.crowd import crowded_out, room_for
from watchkeeper.detectors.incidents.incidents import link_stats

if TYPE_CHECKING:
    from watchkeeper.detectors.engine.pipeline import Pipeline


def make_room(pipeline: Pipeline, t: float) -> list[AlarmEvent]:
    """Let those go of whom least is known, as far as room is needed."""
    _gateways(pipeline, t)
    fleet = pipeline.fleet
    fleet.door.tick(fleet.capacity - len(fleet), fleet.capacity)
    if len(fleet) <= room_for(fleet.capacity):
        return []
    alarmed = {name for kind, subjects in pipeline.book.active if kind != WATCH for name in subjects}
    slots = crowded_out(fleet, t, alarmed)
    pipeline.crowded_out += len(slots)
    return pipeline.forget(slots, t)


def crowded(pipeline: Pipeline) -> bool:
    """Whether anything may have to go by itself, for lack of room."""
    gateways, limit = len(pipeline.gateway_table.number), pipeline.config.limits.max_gateways
    return len(pipeline.fleet) > room_for(pipeline.fleet.capacity) or gateways > room_for(limit)


def _gateways(pipeline: Pipeline, t: float) -> None:
    gateways = pipeline.gateway_table
    limit = pipeline.config.limits.max_gateways
    gateways.door.tick(limit - len(gateways.number), limit)
    gone = gateways.crowded_out(t, limit)
    if not len(gone):
        return
    # everybody who keeps state by the number of a gateway
    if (links := link_stats(pipeline.detectors)) is not None:
        links.forget_gateways(gone)
    pipeline.clock.forget_gateways(gone)
    gateways.forget(gone, t)


def full(pipeline: Pipeline) -> list[str]:
    """One sentence for each table without room, or with room only for those who come again."""
    said = []
    vehicles, capacity = len(pipeline.fleet), pipeline.fleet.capacity
    if vehicles >= capacity:
        said.append(f"the fleet is full: vehicles beyond {capacity:,} are not watched (max_vehicles)")
    elif vehicles > room_for(capacity):
        said.append(
            f"the fleet is nearly full ({vehicles:,} of {capacity:,}, max_vehicles): a new name is watched when it "
            "comes again, and those of whom least is known are forgotten"
        )
    gateways, limit = len(pipeline.gateway_table.number), pipeline.config.limits.max_gateways
    if gateways >= limit:
        said.append(f"the table of gateways is full: samples through others than {limit:,} count as direct")
    elif gateways > room_for(limit):
        said.append(
            f"the table of gateways is nearly full ({gateways:,} of {limit:,}, max_gateways): samples through others "
            "count as direct until they come again"
        )
    return said
