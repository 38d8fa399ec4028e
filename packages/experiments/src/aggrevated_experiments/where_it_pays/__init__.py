"""Studies of where the cost of a mistake matters, with their own problems."""
