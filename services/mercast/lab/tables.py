"""What brokers store and send to keep their tables (D-DBR, sections III-D and V; figures 17 and 18)."""

from collections.abc import Iterator

from mercast.lab.experiment import Row, Setting, experiment, judged
from mercast.lab.overlays import random_overlay
from mercast.overlay.routes import Routes

MOST_BYTES = 11_000


@experiment("A15", "memory of TRT and SPRT at 100 brokers")
def memory(setting: Setting) -> Iterator[Row]:
    topology = random_overlay(100, 6, setting.seed)
    sprt = Routes(topology, 0).sprt
    size = topology.trt.nbytes + len(sprt) * sprt.itemsize
    yield judged("TRT + SPRT", "11 kB", f"{size / 1000:.1f} kB", size <= MOST_BYTES)
