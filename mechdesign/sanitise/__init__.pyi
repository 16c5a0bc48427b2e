from .apply import Applied, sanitise_file
from .group_answers import answer_groups
from .keys import Key, create_key, read_key
from .options import Policy
from .sklearn import ReleaseTransformer
from .streams import (
    engine_errors,
    sanitise,
    sanitise_dask,
    sanitise_spark,
    spark_errors,
)

__all__ = [
    "Applied",
    "Key",
    "Policy",
    "ReleaseTransformer",
    "answer_groups",
    "create_key",
    "engine_errors",
    "read_key",
    "sanitise",
    "sanitise_dask",
    "sanitise_file",
    "sanitise_spark",
    "spark_errors",
]
