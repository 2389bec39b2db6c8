"""``python -m ecotour``."""

import sys

from ecotour.cli import main

if __name__ == "__main__":
    sys.exit(main())
