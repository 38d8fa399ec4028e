"""The figures and tables of the paper, its theory, and studies of where costs pay."""
