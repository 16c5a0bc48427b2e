"""Names that moved to `arguments`, `rationals` and `wording`."""

from mechdesign.core.rationals import fraction_of, fraction_of_text  # noqa: F401
