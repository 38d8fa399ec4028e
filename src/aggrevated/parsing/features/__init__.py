"""Features of symbols: numbers computed from the picture and the position of each symbol."""
