"""What the server that forks workers imports once, so that they begin at once and share its memory."""

import gc
from importlib import import_module

import numpy as np

from aggrevated.kernels.linear_algebra import affine

import_module("aggrevated.collection")  # by name: engines know nothing of what they are used for
affine(np.zeros((1, 1), np.float32), np.zeros((1, 1), np.float32), np.zeros(1, np.float32))  # the compiler is loaded
gc.collect()
gc.freeze()  # else the first collection of a worker would copy all of it
