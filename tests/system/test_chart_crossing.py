"""What `helm test` runs, with brokers of this machine."""

import os
import subprocess
import sys
from pathlib import Path

from live import Mesh

CROSSING = Path(__file__).parents[2] / "charts/mercast/files/crossing.py"


def test_an_event_crosses_from_one_cluster_to_the_other():
    with Mesh(2, clusters=2, edges=1, strategy="merc") as mesh:
        here, there = mesh[1].client, mesh[4].client
        told = os.environ | {"PUBLISH_AT": f"mercast://{here}", "RECEIVE_AT": f"mercast://{there}"}
        done = subprocess.run([sys.executable, CROSSING], env=told, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1].startswith("received ")
    assert done.stdout.splitlines()[-1].endswith(f"at mercast://{there}")
