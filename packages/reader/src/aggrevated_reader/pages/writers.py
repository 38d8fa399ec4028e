"""Random writers: everything that one writer does in the same way on a whole page."""

from __future__ import annotations

from dataclasses import dataclass

from aggrevated_reader.pages.batched_rng import BatchedRng


@dataclass(frozen=True)
class Writer:
    """Style of a hand, a pen and a tablet; lengths are in heights of a digit, angles are slopes."""

    # shapes
    slant: float  # Δx / Δy: positive leans to the right
    aspect: float  # width relative to the way's width
    own: float  # deviation of a symbol's points from the way, equal in all instances
    own_ripple: float  # deviation by a smooth field that bends the whole symbol, equal in all instances
    wobble: float  # deviation of the points, different in each instance
    ripple: float  # deviation by the field, different in each instance
    turn: float  # rotation of each instance in radians
    stretch: float  # stretching of each instance's width and height
    faithful: float  # probability of the preferred way
    # the pen
    rounding: int  # rounds of averaging points with their neighbors: a quick pen cuts corners
    overshoot: float  # how far strokes continue beyond their end
    hooks: float  # share of ends with a hook
    hook: float  # length of hooks
    early_lifts: float  # share of strokes that end too soon
    joins: float  # share of symbols whose lifts are left out
    breaks: float  # share of symbols with a stroke in two pieces
    retraces: float  # share of symbols that are drawn twice
    # sizes
    letters: float
    capitals: float
    operators: float
    inequalities: float  # and other tall signs, relative to operators
    brackets: float  # height relative to the content
    dots: float
    uneven: float  # variation of sizes from symbol to symbol
    # places
    spacing: float
    airy: float  # spacing around operators relative to `spacing`
    parted: float  # spacing around relations relative to that around operators
    irregular: float  # variation of spacing from gap to gap
    slope: float  # of the baseline
    drift: float  # of the baseline, from symbol to symbol
    axis: float  # height of operators' middles above the baseline
    exponents: float  # size of exponents and indices
    raised: float  # height of exponents above the base's top
    parts: float  # size of numerators and denominators
    bars: float  # length of a bar relative to the longer side
    apart: float  # gap between a bar and its numerator or denominator
    leading: float  # gap between lines
    aligned: bool  # whether the relations of all lines are aligned
    # the tablet
    size: float  # pixels of a digit's height
    step: float  # distance between two points
    uneven_steps: float  # variation of a step
    tremor: float
    grid: float  # grid that points are rounded to; 0 for none


def sample_writer(dice: BatchedRng) -> Writer:
    """Sample a writer."""
    haste = dice.sample_fraction()  # a hasty hand is less exact everywhere
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
    """Sample a factor around 1; half and double are equally likely."""
    deviation = by * dice.sample_deviation()
    return 1.0 + deviation if deviation > 0 else 1.0 / (1.0 - deviation)
