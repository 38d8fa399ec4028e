"""Sentences as dependency trees: the transition systems, costs and loop of `parsing`, over words."""
