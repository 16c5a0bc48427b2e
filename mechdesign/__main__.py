"""``python -m mechdesign``."""

import sys

from mechdesign.cli import program

sys.exit(program())
