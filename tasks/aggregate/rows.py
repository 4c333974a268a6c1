"""What the measured tables share."""

from typing import Any

import numpy as np

Row = dict[str, Any]


def known(value: float) -> float | None:
    """A figure as it is stored: NULL where it is not defined."""
    return None if np.isnan(value) else float(value)
