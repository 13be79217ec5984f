"""A second, plain implementation of the conflict metrics: an oracle that shares no line with the first one.

It is written from the specification of the 31 metrics and the page of decisions about it, and from nothing else. It
imports nothing of watchkeeper. It is slow on purpose: lists, loops and the formulas in the order of the specification.

settings.py   every threshold, with the default of the specification
geometry.py   distance, bearing, closest point of approach
log.py        the trajectory as the specification writes it, read step by step
truth.py      predicted conflicts, losses of separation, least separation
alerts.py     alerts that are read from the commands
windows.py    runs of steps as windows, their matching, and whether a conflict was resolved
actions.py    interventions and oscillation
paths.py      path length, detour, arrival
reward.py     the recorded reward, and the parts that a log gives back
metrics.py    all names in one dict; start here
compare.py    the names in which two such dicts differ
episodes.py   random traffic in the same structure; policy.py its commands; edges.py episodes made by hand

Where the document leaves room, and what is chosen here. A name in backquotes is a setting for another choice:
 1. Earth: a sphere with the mean radius 6371.0088 km (`earth_radius_km`) for distances; the tangent plane
    of a closest approach touches WGS 84 midway between the two (`plane_radius_km`).
 2. "headings", "speeds" and "altitudes" have one entry per step of the episode, also for an aircraft that starts later.
 3. Altitudes are agents[name]["altitudes"], feet. Two altitudes that differ by 1000 ft or more are separate, and no
    climb is predicted. This holds for conflicts, threats and losses of separation (`vertical_for`).
 4. Recorded rewards are "rewards", one dict per step like "actions"; the completion column of a CSV is
    "csv_waypoint_completion", one number per aircraft.
 5. Arrived at t: a true "waypoint_status" at t or before; without a status for that aircraft, 1 NM or less at t or
    before (`waypoint_nm`).
 6. waypoint_reached_ratio looks up the last status that was recorded, which is that of the last step where every step
    has one, then the distance of the aircraft's last position. An aircraft without waypoint did not arrive.
 7. headings[t] is the heading before the command of step t.
 8. A command that navigates is no alert, even if its speed part alone is above the threshold. Arrived aircraft can
    alert.
 9. Debounce works on "any aircraft alerts", not on each aircraft (`debounce_per_agent`). The first steps have a shorter
    window and the same n. The step itself need not count.
10. Seconds become steps by rounding to the nearest, halves to even (`steps_of`). The step is the median of the time
    differences.
11. With `merge_overlapping`, windows that only touch stay separate.
12. total_los_duration counts steps, as its definition and range say; its formula, last step less first step, is one
    less per event (`los_duration="span"`).
13. Resolution looks at all pairs, arrived ones too. A conflict lasts to the end if its expanded window does.
14. Lead times, like the windows of resolution, are those of the expanded and clipped windows.
15. A step without commands has a mean command of 0. An aircraft without command at a step is no part of the mean.
16. alert_onsets_per_min divides by the minutes as they are, and is NaN without any.
17. Without timestamps the step is 10 s and flight_time_s that of the steps (`time_without_timestamps`).
18. Reward: each row is a step; the first row of an aircraft has no progress and no drift part, but can enter a
    violation or arrive. An aircraft collects up to the step in which it arrives. Without waypoint there is no reach and
    no terminal part. The team part is left out, and bounded: the value of its potential at the kink and the formula of
    its responsibility are not given.
19. The six further names are not in the document; metrics.py says what each is.
20. Fewer than two aircraft at all times: min_separation_nm is NaN, and every window is resolved.
"""
