"""The number of operators of vehicles changes: their dumps are taken apart by vehicle and put together again.

    regroup(dumps, 4) -> dumps      of all operators of vehicles, as `Operator.dump` gives them, for four
    by_bucket(dump, buckets)        one operator's dump as one for each of its buckets
    join(dumps) -> dump             of operators or buckets that are to be one operator from now on

A dump of a bucket is one that an operator of that bucket alone would give: an engine that keeps state by key keeps one
for each bucket, and an operator that gets buckets joins them. What follows is the same to the byte. Front, the operator
of the fleet and Merge do not change with the number of operators.
"""

from watchkeeper.engines.regroup.dumps import by_bucket, join, regroup

__all__ = ["by_bucket", "join", "regroup"]
