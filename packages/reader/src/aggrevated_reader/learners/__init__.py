"""The policy of the reader: names of symbols, heads, their expected cost."""
