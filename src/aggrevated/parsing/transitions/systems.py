"""Table of the transition systems by name."""

from aggrevated.parsing.transitions import TransitionSystem
from aggrevated.parsing.transitions.arc_eager import ArcEager
from aggrevated.parsing.transitions.arc_hybrid import ArcHybrid

SYSTEMS: dict[str, TransitionSystem] = {system.name: system for system in (ArcEager(), ArcHybrid())}
