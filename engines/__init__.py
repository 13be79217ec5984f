"""The Pipeline as operators: the same detection spread over several pipelines, processes or machines, to the byte.

Vehicles are spread by name (streams/split.py): what belongs to one vehicle never moves, whatever gateway it is heard
through. Four stages, each with `dump` and `load`, joined by bytes (wire.py), without a way back:

    Front     one. Checks, judges time and lateness once, keeps the caps of the whole fleet. `feed(batch) -> Turn`
    Operator  one for each n-th of the vehicles, `of_vehicles(i, n)`, and one for the `FLEET`: a Pipeline that runs
              some of the detectors. `answer(ask: bytes) -> bytes` for each turn; without samples too, so that silence
              is noticed. By itself an Operator has `feed(batch)` and `reach(t)`, both giving events
    Merge     one. Puts the answers to one turn together: one order, the alarms `clock` and `incident`, diagnoses

`Sharded` (sharded.py) is the whole of it in one process, with the face of a Pipeline. What drives the stages elsewhere
(workers/: processes; flink/: a cluster) only moves bytes: turn number k's asks to every operator in order, and all
answers to turn k to Merge before those to turn k + 1.
"""
