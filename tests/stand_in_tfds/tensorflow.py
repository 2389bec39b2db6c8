"""Stands in for TensorFlow, so that what surrounds the decoding is tested in milliseconds.

It is as noisy as the real one, notes each start in ``STAND_IN_LOG``, and fails as
``STAND_IN_FAILS`` says.
"""

import os
import signal
import sys
import time
from pathlib import Path

print("noise on stdout")
print("noise on stderr", file=sys.stderr)

match os.environ.get("STAND_IN_FAILS"):
    case "import":
        raise ImportError("libtensorflow is broken\nand says so at length")
    case "exit":
        os._exit(7)
    case "interrupt":
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)


class config:
    @staticmethod
    def set_visible_devices(devices: list[object], kind: str) -> None:
        line = f"{kind} {devices} {os.environ['CUDA_VISIBLE_DEVICES']}\n"
        with Path(os.environ["STAND_IN_LOG"]).open("a") as log:
            log.write(line)
        time.sleep(0.5)  # long enough for others to run into it
