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
from watchkeeper.streams.simulate import simulate

def compiled():
    modules = [m for name, m in list(sys.modules.items()) if name.startswith("watchkeeper.")]
    kernels = {v for m in modules for v in vars(m).values() if isinstance(v, CPUDispatcher)}
    return {(k.py_func.__module__, k.py_func.__name__, s) for k in kernels for s in k.signatures}

batches = [b for scenario in ("mixed", "controlled", "jamming") for b in simulate(scenario, seconds=60.0).batches()]
warm_up(DEFAULT)
before, pipeline = compiled(), Pipeline(DEFAULT)
for batch in batches:
    pipeline.feed(batch)
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
