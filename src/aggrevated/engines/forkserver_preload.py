"""Modules that the fork server imports once, so that workers start quickly and share its memory."""

import gc
from importlib import import_module

import numpy as np

from aggrevated.kernels.linear_algebra import affine

import_module("aggrevated.collection")  # by name: engines must not depend on it
affine(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32), np.zeros(1, np.float32))  # loads the compiler
gc.collect()
gc.freeze()  # else the first garbage collection of a worker copies all pages
