"""Experiments on Section 5 of the paper: regret on the tree and on general MDPs, one file per algorithm."""
