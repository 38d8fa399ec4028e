"""Projection of raw features for policies: principal components of HoG, and standardized geometry."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import affine
from aggrevated.parsing.features.geometry import GEOMETRY
from aggrevated.parsing.features.symbols import PIXELS, RAW

COMPONENTS = 160  # of HoG's 576 numbers: 95 to 97 % of the variance


class Projection(nn.Module):
    """Affine map x ↦ (x − centre) · matrix, fixed after `fit` and saved with the policy that uses it.

    Args:
        centre: mean of the raw features, [F].
        matrix: projection matrix, [F, D].
    """

    centre: Tensor
    matrix: Tensor

    def __init__(self, centre: Array, matrix: Array) -> None:
        super().__init__()
        self.register_buffer("centre", torch.from_numpy(centre.astype(np.float32)))
        self.register_buffer("matrix", torch.from_numpy(matrix.astype(np.float32)))

    @classmethod
    def blank(cls, geometry: bool = True) -> Projection:
        """Return a projection of zeros into which saved tensors can be loaded."""
        return cls(np.zeros(RAW), np.zeros((RAW, COMPONENTS + geometry * len(GEOMETRY))))

    @classmethod
    def fit(cls, raw: Array, pixels: int = PIXELS, components: int = COMPONENTS) -> Projection:
        """Fit a projection to raw features.

        The first `pixels` features become principal components with a common scale and a mean variance of
        1. Each of the others, the geometry, is scaled to a variance of 1.

        Args:
            raw: raw features, [n, F].
            pixels: number of leading features that describe the picture.
            components: number of principal components.

        Returns:
            The projection.
        """
        width = raw.shape[1]
        centre = raw.mean(axis=0, dtype=np.float64)
        centered = raw[:, :pixels] - centre[:pixels]
        variance, axes = np.linalg.eigh(centered.T @ centered / max(len(raw) - 1, 1))
        matrix = np.zeros((width, components + width - pixels))
        matrix[:pixels, :components] = axes[:, : -components - 1 : -1] / np.sqrt(variance[-components:].mean() + 1e-9)
        matrix[pixels:, components:] = np.diag(1 / (raw[:, pixels:].std(axis=0) + 1e-6))
        return cls(centre, matrix)

    @property
    def width(self) -> int:
        """Return D, the number of projected features."""
        return int(self.matrix.shape[1])

    def drop_geometry(self) -> Projection:
        """Return a copy without the geometry features, for policies that read only pictures."""
        return Projection(self.centre.numpy(), self.matrix.numpy()[:, :COMPONENTS])

    def forward(self, raw: Array) -> Array:
        """Return the projected features, float32 [n, D]."""
        return affine(raw - self.centre.numpy(), self.matrix.numpy(), np.zeros(self.width, np.float32))
