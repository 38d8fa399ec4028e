"""From raw features of a symbol to those that a policy reads: HoG's principal components, standardised geometry."""

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
    """x ↦ (x − centre) · matrix, fixed after it was fitted; it is saved with the policy that uses it."""

    centre: Tensor  # [F]
    matrix: Tensor  # [F, D]

    def __init__(self, centre: Array, matrix: Array) -> None:
        super().__init__()
        self.register_buffer("centre", torch.from_numpy(centre.astype(np.float32)))
        self.register_buffer("matrix", torch.from_numpy(matrix.astype(np.float32)))

    @classmethod
    def blank(cls, geometry: bool = True) -> Projection:
        """One to load fitted numbers into."""
        return cls(np.zeros(RAW), np.zeros((RAW, COMPONENTS + geometry * len(GEOMETRY))))

    @classmethod
    def fit(cls, raw: Array, pixels: int = PIXELS, components: int = COMPONENTS) -> Projection:
        """Fitted to raw features [n, F]: the components of the first so many numbers scaled alike, to a mean variance
        of 1; the others, geometry, each to 1."""
        width = raw.shape[1]
        centre = raw.mean(axis=0, dtype=np.float64)
        centred = raw[:, :pixels] - centre[:pixels]
        variance, axes = np.linalg.eigh(centred.T @ centred / max(len(raw) - 1, 1))
        matrix = np.zeros((width, components + width - pixels))
        matrix[:pixels, :components] = axes[:, : -components - 1 : -1] / np.sqrt(variance[-components:].mean() + 1e-9)
        matrix[pixels:, components:] = np.diag(1 / (raw[:, pixels:].std(axis=0) + 1e-6))
        return cls(centre, matrix)

    @property
    def width(self) -> int:
        """D."""
        return int(self.matrix.shape[1])

    def drop_geometry(self) -> Projection:
        """The same, for a policy that sees only the pictures."""
        return Projection(self.centre.numpy(), self.matrix.numpy()[:, :COMPONENTS])

    def forward(self, raw: Array) -> Array:
        """[n, D] float32."""
        return affine(raw - self.centre.numpy(), self.matrix.numpy(), np.zeros(self.width, np.float32))
