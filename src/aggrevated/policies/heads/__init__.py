"""Action distributions, one file for each kind: categorical for finite sets, Gaussian for vectors."""

from aggrevated.policies.heads.base import Head, HeadSettings, Sampler
from aggrevated.policies.heads.categorical import CategoricalHead, CategoricalSampler
from aggrevated.policies.heads.gaussian import GaussianHead, GaussianSampler

__all__ = [
    "CategoricalHead",
    "CategoricalSampler",
    "GaussianHead",
    "GaussianSampler",
    "Head",
    "HeadSettings",
    "Sampler",
]
