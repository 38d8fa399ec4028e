"""People who write, and how: what one of them does in the same way all over a page."""

from __future__ import annotations

from dataclasses import dataclass

from aggrevated_reader.pages.batched_rng import BatchedRng


@dataclass(frozen=True)
class Writer:
    """A hand, a pen and a tablet. Lengths are in heights of a digit, angles are slopes, the rest are shares."""

    # shapes
    slant: float  # Δx / Δy: positive leans to the right
    aspect: float  # width over the way's width
    own: float  # how far the points of a symbol are from those of the way, always in the same direction
    own_ripple: float  # the same of a smooth field that bends the whole symbol
    wobble: float  # what changes of the points from instance to instance
    ripple: float  # what changes of the field
    turn: float  # of symbols, from instance to instance, in radians
    stretch: float  # of symbols' widths and heights, from instance to instance
    faithful: float  # how often the preferred way is taken
    # the pen
    rounding: int  # how often the path is averaged with its neighbours: a quick pen cuts corners
    overshoot: float  # how far strokes go on beyond their end
    hooks: float  # of ends that have one, as the pen comes down or leaves
    hook: float  # length
    early_lifts: float  # of strokes that end too soon
    joins: float  # of lifts that are forgotten
    breaks: float  # of symbols with a stroke in two pieces
    retraces: float  # of symbols with a stroke that is drawn again
    # sizes
    letters: float
    capitals: float
    operators: float
    inequalities: float  # and other tall signs, over operators
    brackets: float  # height over what is inside
    dots: float
    uneven: float  # sizes from symbol to symbol
    # places
    spacing: float
    airy: float  # spacing around operators over the other
    parted: float  # spacing around relations over that around operators
    irregular: float  # spacing, from gap to gap
    slope: float  # of the baseline
    drift: float  # of the baseline, from symbol to symbol
    axis: float  # height of operators' middles over the baseline
    exponents: float  # size of what is raised
    raised: float  # height over the base's top at which it stands
    parts: float  # size of what is above and below a bar
    bars: float  # length of a bar over that of the longer side
    apart: float  # from a bar to what is above and below
    leading: float  # between lines
    aligned: bool  # relations of all lines below each other
    # the tablet
    size: float  # pixels of a digit's height
    step: float  # between two points
    uneven_steps: float  # of a step
    tremor: float
    grid: float  # to which points are rounded


def sample_writer(dice: BatchedRng) -> Writer:
    """One of very many."""
    haste = dice.sample_fraction()  # a hasty hand is less exact in everything
    neat = 1.6 - haste
    size = dice.uniform(30, 110)
    return Writer(
        slant=0.10 + 0.17 * dice.sample_deviation(),
        aspect=_sample_factor(dice, 0.20),
        own=dice.uniform(0.010, 0.045),
        own_ripple=dice.uniform(0.010, 0.055),
        wobble=dice.uniform(0.008, 0.026) * (0.6 + haste),
        ripple=dice.uniform(0.008, 0.030) * (0.6 + haste),
        turn=dice.uniform(0.02, 0.09),
        stretch=dice.uniform(0.05, 0.16),
        faithful=dice.uniform(0.6, 1.0),
        rounding=dice.count(0, 2 + round(3 * haste)),
        overshoot=dice.uniform(0.0, 0.07),
        hooks=dice.pick((0.0, 0.05, 0.25)),
        hook=dice.uniform(0.03, 0.10),
        early_lifts=dice.pick((0.0, 0.05, 0.2)),
        joins=dice.pick((0.0, 0.0, 0.02, 0.06)),
        breaks=dice.pick((0.0, 0.0, 0.01, 0.03)),
        retraces=dice.pick((0.0, 0.0, 0.02)),
        letters=1.22 * _sample_factor(dice, 0.18),
        capitals=1.05 * _sample_factor(dice, 0.12),
        operators=0.98 * _sample_factor(dice, 0.24),
        inequalities=1.30 * _sample_factor(dice, 0.15),
        brackets=1.25 * _sample_factor(dice, 0.18),
        dots=1.0 * _sample_factor(dice, 0.4),
        uneven=dice.uniform(0.03, 0.12),
        spacing=dice.uniform(0.10, 0.45) * _sample_factor(dice, 0.25) * neat**0.5,
        airy=dice.uniform(1.1, 3.2),
        parted=dice.uniform(0.9, 2.2),
        irregular=dice.uniform(0.15, 0.55),
        slope=0.025 * dice.sample_deviation(),
        drift=dice.uniform(0.01, 0.06),
        axis=0.35 + 0.06 * dice.sample_deviation(),
        exponents=dice.uniform(0.45, 0.85),
        raised=0.02 + 0.16 * dice.sample_deviation(),
        parts=dice.uniform(0.7, 1.0),
        bars=dice.uniform(0.95, 1.5),
        apart=dice.uniform(0.15, 0.65),
        leading=dice.uniform(0.35, 1.2),
        aligned=dice.sample_bool(0.25),
        size=size,
        step=dice.uniform(0.025, 0.11),
        uneven_steps=dice.uniform(0.0, 0.4),
        tremor=dice.pick((0.0, 0.003, 0.007, 0.013)),
        grid=dice.pick((0.0, 1.0, 1.0, 2.0)) / size,
    )


def _sample_factor(dice: BatchedRng, by: float) -> float:
    """Around 1, as often half as double."""
    spread = by * dice.sample_deviation()
    return 1.0 + spread if spread > 0 else 1.0 / (1.0 - spread)
