import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

def enumerate_vertices(
    rows: Array,
    magnitude: Array,
    lower: Array,
    upper: Array,
    n: int,
    most_bases: int,
    most_points: int,
    tolerance: float,
    wanted: bool,
    seconds: float,
    /,
) -> tuple[int, bytearray, list[int], int, int, int]: ...
