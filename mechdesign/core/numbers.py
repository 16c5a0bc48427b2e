"""Names that moved to `arguments`, `rationals` and `wording`."""

from mechdesign.core.arguments import (
    at_least_times,
    at_most_times,
    number,
    repeated,
    several,
    share_of,
    valid_text,
)  # noqa: F401, E501
from mechdesign.core.rationals import fraction_of, fraction_of_text  # noqa: F401
from mechdesign.core.wording import (
    about,
    at_least,
    at_most,
    budget,
    distance_at_most,
    factor_at_least,
    factor_at_most,
    listed,
    order_of,
    percent_of,
    quoted,
)  # noqa: F401, E501
