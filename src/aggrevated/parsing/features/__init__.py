"""What the parser is told of a symbol: numbers made of its picture and of its place."""
