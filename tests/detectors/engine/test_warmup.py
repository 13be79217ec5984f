"""Nothing is compiled while messages wait: whatever a stream brings, `warm_up` has been there before."""

import subprocess
import sys

# A process of its own: in this one other tests have compiled what they needed.
PROGRAM = """
import sys
from numba.core.registry import CPUDispatcher
from watchkeeper.config.schema import DEFAULT
from watchkeeper.detectors.engine.pipeline import Pipeline
from watchkeeper.detectors.engine.warmup import warm_up
from watchkeeper.streams.codec import decode
from watchkeeper.streams.codec.encode import encode_frame, encode_sample, frame_topic, sample_topic
from watchkeeper.streams.edge import Edge
from watchkeeper.streams.messages import COLUMN
from watchkeeper.streams.simulate import simulate

def compiled():
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("watchkeeper.")]
    kernels = {v for m in modules for v in vars(m).values() if isinstance(v, CPUDispatcher)}
    return {(k.py_func.__module__, k.py_func.__name__, s) for k in kernels for s in k.signatures}

batches = [b for scenario in ("mixed", "controlled", "jamming") for b in simulate(scenario, seconds=60.0).batches()]
warm_up(DEFAULT)
decode.warm_up()
before, pipeline, edge = compiled(), Pipeline(DEFAULT), Edge(DEFAULT.topics, DEFAULT.limits, print)
for number, batch in enumerate(batches):
    arrivals = []
    for kind, cols in batch.kinds.items():
        ids = [batch.ids[vid] for vid in cols.vid]
        # by turns as a log, frames and messages bring it
        if number % 3 == 1:
            arrivals.append((frame_topic(DEFAULT.topics, kind), encode_frame(kind, ids, cols.t, cols.data), 0.0))
        elif number % 3 == 2:
            for name, t, row in zip(ids, cols.t.tolist(), cols.data.T.tolist()):
                payload = encode_sample(kind, t, dict(zip(COLUMN[kind], row)))
                arrivals.append((sample_topic(DEFAULT.topics, kind, name), payload, 0.0))
    if arrivals:
        edge.add(arrivals)
    for piece in edge.take() if arrivals else [batch]:
        pipeline.feed(piece)
pipeline.snapshot()
pipeline.advance(pipeline.t_max + 30.0)
pipeline.finish()
assert pipeline.ticks > 60
for module, name, _ in sorted(compiled() - before, key=str):
    print(module, name)
"""


def test_no_kernel_is_compiled_after_the_warm_up() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout == ""
