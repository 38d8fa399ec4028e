"""Heads: action distributions, categorical for finite sets of actions and Gaussian for vectors."""

from aggrevated.policies.heads.base import Head, HeadSettings
from aggrevated.policies.heads.categorical import CategoricalHead
from aggrevated.policies.heads.gaussian import GaussianHead

__all__ = [
    "CategoricalHead",
    "GaussianHead",
    "Head",
    "HeadSettings",
]
