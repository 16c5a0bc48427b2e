from .apply import Applied, sanitise_file
from .dask import sanitise_dask
from .frames import sanitise
from .keys import Key, create_key, read_key
from .options import Policy
from .sklearn import ReleaseTransformer
from .spark import sanitise_spark, spark_errors

__all__ = [
    "Applied",
    "Key",
    "Policy",
    "ReleaseTransformer",
    "create_key",
    "read_key",
    "sanitise",
    "sanitise_dask",
    "sanitise_file",
    "sanitise_spark",
    "spark_errors",
]
