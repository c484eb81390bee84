"""`python -m muntin` is the command `muntin`."""

from __future__ import annotations

import sys

from muntin.cli import main

if __name__ == "__main__":
    sys.exit(main())
