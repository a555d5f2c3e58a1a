"""Found by Python at its start, in the brokers of a test: the wall clock is off by what a file says at the moment.

The file has the number of its broker for a name, and holds the seconds as a double.
"""

import os
import struct
import sys
import time
from contextlib import suppress
from mmap import ACCESS_READ, mmap

_now, _now_ns = time.time, time.time_ns


def _set_off(file):
    off = mmap(file.fileno(), struct.calcsize("d"), access=ACCESS_READ)
    time.time = lambda: _now() + struct.unpack("d", off[:])[0]
    time.time_ns = lambda: _now_ns() + int(struct.unpack("d", off[:])[0] * 1e9)


with suppress(KeyError, ValueError, FileNotFoundError):  # not a broker, or none with a clock of its own
    _id = sys.orig_argv[sys.orig_argv.index("--id") + 1]
    with open(os.path.join(os.environ["MERCAST_TEST_CLOCKS"], _id), "rb") as _file:
        _set_off(_file)
