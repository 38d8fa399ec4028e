"""Roll-ins, lines 4 and 5 of Algorithm 1: the roll-in policy and the trajectories that it collects."""
