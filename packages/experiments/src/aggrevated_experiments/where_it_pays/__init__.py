"""Studies of when the cost of a mistake matters, with their own problems."""
