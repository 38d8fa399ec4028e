"""Action distributions, one file for each kind: categorical for finite sets, Gaussian for vectors."""

from aggrevated.policies.heads.base import Head, HeadSettings
from aggrevated.policies.heads.categorical import CategoricalHead
from aggrevated.policies.heads.gaussian import GaussianHead

__all__ = [
    "CategoricalHead",
    "GaussianHead",
    "Head",
    "HeadSettings",
]
