"""Vectors of length 1, and those that have none."""

import numpy as np

from agentir_ray.encoders.protocol import Floats


def normalized(vectors: Floats) -> Floats:
    """float32 (n, dim): each row by its length, which is computed in float64; a zero row stays zero."""
    wide = vectors.astype(np.float64)
    length = np.sqrt(np.einsum("ij,ij->i", wide, wide))[:, None]
    unit: Floats = np.divide(wide, length, out=np.zeros_like(wide), where=length > 0).astype(np.float32)
    return unit
