"""Time and memory of the natural-gradient direction of recurrent policies: 32 units, K = 50, T = 200, one thread.

As in `natural_step.py`, 1 is the price of one plain gradient. Memory is the increase of the peak of a fresh process by
one direction.
"""

import interleave

# isort: split
import ctypes
import gc
import multiprocessing
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

import torch
from torch import Tensor

from aggrevated.losses import compute_policy_distribution
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.fisher import compute_trajectory_scores
from aggrevated.policies import Policy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.policies.recurrent import RecurrentPolicy
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import compute_loss_and_gradient
from aggrevated.updates.fisher_solvers import solve_closed_form
from aggrevated.updates.natural import NaturalUpdate
from natural_step import ACTIONS, example, flat, hessian_vector, natural, once

K = 50
T = 200
INPUTS = 4
HIDDEN = 32
CELLS = {"LSTM-32": "lstm", "GRU-32": "gru"}
MEMORY = Path("/proc/self/status")  # Linux only

Work = Callable[[], object]

warnings.filterwarnings("ignore", "TF32 acceleration on top of oneDNN")  # torch warns whenever oneDNN is disabled


def loop_scores(policy: Policy, trajectories: Trajectories) -> Tensor:
    """Return S_nᵀ [K, d] with one backward pass for each trajectory."""
    rows = [loop_row(policy, trajectories.take([k])) for k in range(trajectories.count)]
    return torch.stack(rows) / (trajectories.horizon * trajectories.count**0.5)


def loop_row(policy: Policy, one: Trajectories) -> Tensor:
    """Return ∇ log ρ(τ) of one trajectory, [d]."""
    log_probability = compute_policy_distribution(policy, one).log_prob(torch.from_numpy(one.actions))
    own = torch.from_numpy(one.by_learner)
    return flat(torch.autograd.grad((log_probability * own).sum(), list(policy.parameters())))


def loop(policy: Policy, trajectories: Trajectories, gradient: Tensor) -> Tensor:
    """Return our direction from the scores of the loop."""
    return NaturalUpdate().compute_displacement(loop_scores(policy, trajectories).T, gradient)


def without_onednn(policy: Policy, trajectories: Trajectories, gradient: Tensor) -> Tensor:
    """Return TRPO's direction with torch's plain cells, one time step after the other."""
    with torch.backends.mkldnn.flags(enabled=False):
        return hessian_vector(policy, trajectories, gradient)


def contenders(cell: str, count: int = K, length: int = T) -> dict[str, Work]:
    """Return all contenders that torch supports, by name."""
    policy = RecurrentPolicy(INPUTS, CategoricalHead(ACTIONS), HIDDEN, cell, torch.Generator().manual_seed(0))
    trajectories, cost_to_go = example(policy, count, length, INPUTS)
    plain = partial(compute_loss_and_gradient, policy, all_actions_loss, trajectories, cost_to_go)
    gradient = plain()[1]
    found = {
        "plain gradient": plain,
        "scores": partial(compute_trajectory_scores, policy, trajectories),
        "aggrevated": partial(natural, policy, trajectories, gradient, solve_closed_form),
        "loop over trajectories": partial(loop, policy, trajectories, gradient),
        "Hessian-vector CG": partial(hessian_vector, policy, trajectories, gradient),
    }
    if cell == "lstm":  # on a CPU torch never uses oneDNN for GRUs
        found["Hessian-vector CG, oneDNN off"] = partial(without_onednn, policy, trajectories, gradient)
    return found


def failure(work: Work) -> str | None:
    """Return torch's error where it cannot differentiate a fused layer twice, else None."""
    try:
        work()
    except (RuntimeError, NotImplementedError) as error:
        return str(error).partition("\n")[0]
    return None


def check(possible: dict[str, Work]) -> None:
    """Assert that our direction equals the loop's, that oneDNN changes none, and that all are descent directions."""
    gradient = possible["plain gradient"]()[1]
    for group in (("aggrevated", "loop over trajectories"), ("Hessian-vector CG", "Hessian-vector CG, oneDNN off")):
        directions = [possible[name]() for name in group if name in possible]
        for direction in directions:
            assert direction @ gradient < 0
            torch.testing.assert_close(direction, directions[0], rtol=1e-3, atol=1e-4 * float(direction.abs().max()))


def memory_of(cell: str, name: str) -> float:
    """Return the megabytes by which one direction raises the peak of this process, after a tiny warm-up."""
    contenders(cell, count=2, length=3)[name]()  # loads what is needed at a first use
    work = contenders(cell)[name]
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)  # return freed memory to the system, so that none of it hides later use
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak
    before = peak()
    work()
    return peak() - before


def peak() -> float:
    """Return the peak memory of this process, in megabytes."""
    line = next(line for line in MEMORY.read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def all_memory(names: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return `memory_of` each contender in a fresh process, or an empty dict where the system lacks it."""
    if not MEMORY.exists():
        return {}
    fresh = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, fresh, max_tasks_per_child=1) as pool:
        megabytes = pool.map(memory_of, [CELLS[case] for case, _ in names], [name for _, name in names])
        return dict(zip(names, megabytes, strict=True))


def main() -> None:
    options = interleave.arguments(__doc__, rounds=5, seconds=0.3)
    works: dict[tuple[str, str], Work] = {}
    failures: dict[tuple[str, str], str] = {}
    for case, cell in CELLS.items():
        possible = contenders(cell)
        for name, work in contenders(cell, count=2, length=3).items():
            if message := failure(work):
                failures[case, name] = message
                del possible[name]
        check(possible)
        works |= {(case, name): work for name, work in possible.items()}
    megabytes = all_memory([(case, name) for case, name in works if name != "scores"])
    units = {key: partial(once, work) for key, work in works.items()}
    spent = interleave.interleave(units, options.rounds, options.seconds)
    rows = []
    targets = []
    for (case, name), seconds in spent.items():
        in_gradients = interleave.ratios(seconds, spent[case, "plain gradient"])
        if name == "plain gradient":
            rows.append(interleave.summary(case, name, "ms", [1000 * s for s in seconds]))
        else:
            rows.append(interleave.summary(case, name, "gradients", in_gradients))
        if (case, name) in megabytes:
            rows.append(interleave.summary(case, name, "MB", [megabytes[case, name]]))
        if name == "aggrevated":
            targets.append(interleave.at_most(case, "direction, in gradients", 6, in_gradients))
        if name.startswith("Hessian-vector"):
            faster = interleave.ratios(seconds, spent[case, "aggrevated"])
            targets.append(interleave.at_least(case, f"speed / {name}", 4, faster))
    interleave.report("Natural-gradient direction, recurrent policies", rows, targets, options)
    for (case, name), message in failures.items():
        print(f"{case}, {name}: not possible: {message}")


if __name__ == "__main__":
    main()
