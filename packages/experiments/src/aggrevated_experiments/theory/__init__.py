"""Section 5 of the paper, runnable: regret on the tree and on general MDPs, one small file for each algorithm."""
