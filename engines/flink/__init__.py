"""The stages of engines/ as a job of Apache Flink: the cluster moves the bytes, keeps the state and starts again.

    numbers ──▶ Front ──┬─▶ vehicles, n times ──┬─▶ Merge ──▶ files, MQTT or Kafka
                        ├─▶ fleet ──────────────┤
                        └───────────────────────┘

One process function for each stage (front.py, operators.py, merge.py), wired in job.py. What they tell each other and
how state is saved is in messages.py. PyFlink is an extra: nothing but `watchkeeper flink` imports this package.
"""

from watchkeeper.engines.flink.worker import mend_print

# before anything of this package imports Numba
mend_print()
