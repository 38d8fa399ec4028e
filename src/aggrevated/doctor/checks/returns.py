"""What the expert earns, beside acting at random, the first policy, and what it earned in training."""

from __future__ import annotations

from collections.abc import Iterator

from aggrevated.core.statistics import standard_error
from aggrevated.doctor.estimates import Estimate, estimate_mean
from aggrevated.doctor.examination import Examination
from aggrevated.doctor.findings import Finding

LOST = 0.5  # of what it earned in training above what chance earns: less than this is another expert, or another world


def check_returns(patient: Examination) -> Iterator[Finding]:
    """An expert that is worse than chance teaches the opposite; one far below its training is not itself here."""
    expert, random, first = patient.of_expert, patient.of_random, patient.of_first
    means = {name: estimate_mean(of.returns) for name, of in (("expert", expert), ("random", random), ("first", first))}
    numbers = {name: mean.as_list() for name, mean in means.items()}
    numbers |= {f"{name}_episodes": [of.count] for name, of in (("expert", expert), ("random", random))}
    shared = min(expert.count, random.count)
    better = estimate_mean(expert.returns[:shared] - random.returns[:shared])
    error = standard_error(expert.returns)
    give_or_take = f" ± {error:.1f}" if error is not None else ""
    said = f"the expert earns {means['expert'].value:.1f}{give_or_take} an episode ({expert.count} of them)"
    beside = f"acting at random {means['random'].value:.1f}, the first policy {means['first'].value:.1f}"
    if better.high < 0:
        remedy = "check the sign of its costs, the order of its actions, and that it was made for this environment"
        yield Finding("return", "fault", f"the expert is worse than chance: {said}, {beside}", remedy, numbers)
    elif better.low <= 0:
        remedy = "check that it was made for this environment; if it was, reinforcement learning serves better"
        yield Finding("return", "warning", f"the expert is no better than chance: {said}, {beside}", remedy, numbers)
    else:
        yield Finding("return", "fine", f"{said}; {beside}", numbers=numbers)
    yield from compare_with_training_return(patient, means["expert"], means["random"])


def compare_with_training_return(patient: Examination, mean: Estimate, random: Estimate) -> Iterator[Finding]:
    """Only where somebody says what it earned there, and over as many steps."""
    known = patient.training
    if known.mean_return is None or known.horizon not in (None, patient.horizon):
        return
    least = random.value + LOST * (known.mean_return - random.value)
    numbers = {"here": mean.as_list(), "in_training": known.mean_return}
    if mean.high < least:
        sentence = f"it earns {mean.value:.1f} here, where {known.source} says {known.mean_return:.1f}"
        remedy = "give it the environment that it was trained in, with the same wrappers and normalisation"
        yield Finding("training", "fault", sentence, remedy, numbers)
