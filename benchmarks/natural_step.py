"""The natural-gradient direction against one plain gradient: K = 50 trajectories of T = 100 steps, MLPs, one thread.

Every contender turns trajectories into a direction δ. The plain gradient on the right-hand side is computed once,
outside. So 1 is the price of a regular step, and the numbers are what "natural" adds.
"""

import interleave

# isort: split
from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch import Tensor
from torch.distributions import kl_divergence

from aggrevated.losses import compute_policy_distribution
from aggrevated.losses.all_actions import all_actions_loss
from aggrevated.losses.fisher import compute_trajectory_scores
from aggrevated.oracles import CostToGo
from aggrevated.policies import Policy
from aggrevated.policies.feed_forward import FeedForwardPolicy
from aggrevated.policies.heads import CategoricalHead
from aggrevated.rollout.trajectories import Trajectories
from aggrevated.updates import compute_loss_and_gradient
from aggrevated.updates.fisher_solvers import solve_closed_form, solve_conjugate_gradient
from aggrevated.updates.natural import NaturalUpdate

K = 50
T = 100
ACTIONS = 3
NETWORKS = {"5k": (11, (64, 64)), "95k": (24, (256, 256, 88))}  # observation size, hidden layers


def example(policy: Policy, count: int, length: int, inputs: int) -> tuple[Trajectories, CostToGo]:
    """Return full trajectories [count, length] of the policy's actions, and a cost of every action."""
    random = np.random.default_rng(0)
    shape = (count, length)
    observations = random.standard_normal((*shape, inputs), np.float32)
    all_steps = np.ones(shape, bool)
    with torch.no_grad():
        probabilities = policy(torch.from_numpy(observations), torch.from_numpy(all_steps)).probs.numpy()
    actions = np.minimum((random.random((*shape, 1)) > probabilities.cumsum(-1)).sum(-1), ACTIONS - 1)
    trajectories = Trajectories(
        observations, observations, actions, random.random(shape), all_steps, ~all_steps, horizon=length
    )
    costs = random.standard_normal((*shape, ACTIONS), np.float32)
    return trajectories, CostToGo(costs, np.ones(shape, np.float32))


def natural(policy: Policy, trajectories: Trajectories, gradient: Tensor, solver: Callable) -> Tensor:
    """Return our direction: one score per trajectory, then a damped solve with S Sᵀ."""
    return NaturalUpdate(solver=solver).compute_displacement(
        compute_trajectory_scores(policy, trajectories).T, gradient
    )


def hessian_vector(
    policy: Policy, trajectories: Trajectories, g: Tensor, iterations: int = 10, damping: float = 0.1
) -> Tensor:
    """Return TRPO's direction: conjugate gradient on the Hessian of the mean KL, a backward pass per product."""
    parameters = list(policy.parameters())
    with torch.no_grad():
        before = compute_policy_distribution(policy, trajectories)
    kl = kl_divergence(compute_policy_distribution(policy, trajectories), before).mean()
    kl_gradient = flat(torch.autograd.grad(kl, parameters, create_graph=True))

    def product(vector: Tensor) -> Tensor:
        return flat(torch.autograd.grad(kl_gradient @ vector, parameters, retain_graph=True)) + damping * vector

    delta = torch.zeros_like(g)
    residual = g.clone()
    direction = g.clone()
    squared = residual @ residual
    for _ in range(iterations):
        moved = product(direction)
        step = squared / (direction @ moved)
        delta += step * direction
        residual -= step * moved
        previous = squared
        squared = residual @ residual
        direction = residual + squared / previous * direction
    step_length = torch.sqrt(2 * 0.01 / (delta @ product(delta)))  # one more product, as in TRPO
    return -step_length * delta


def flat(tensors: tuple[Tensor, ...]) -> Tensor:
    return torch.cat([tensor.reshape(-1) for tensor in tensors])


def once(work: Callable[[], object]) -> int:
    """Do one unit of work."""
    work()
    return 1


def check(policy: Policy, trajectories: Trajectories, gradient: Tensor) -> None:
    """Assert that both of our solvers agree, and that all three directions are descent directions."""
    exact = natural(policy, trajectories, gradient, solve_closed_form)
    torch.testing.assert_close(
        natural(policy, trajectories, gradient, solve_conjugate_gradient), exact, rtol=1e-3, atol=1e-6
    )
    assert exact @ gradient < 0 and hessian_vector(policy, trajectories, gradient) @ gradient < 0


def main() -> None:
    options = interleave.arguments(__doc__, rounds=9, seconds=0.5)
    contenders: dict[tuple[str, str], Callable[[], int]] = {}
    for size, (inputs, hidden) in NETWORKS.items():
        policy = FeedForwardPolicy(inputs, CategoricalHead(ACTIONS), hidden, torch.Generator().manual_seed(0))
        trajectories, cost_to_go = example(policy, K, T, inputs)
        case = f"d = {sum(p.numel() for p in policy.parameters()):,} ({size})"
        plain = partial(compute_loss_and_gradient, policy, all_actions_loss, trajectories, cost_to_go)
        gradient = plain()[1]
        check(policy, trajectories, gradient)
        for name, work in {
            "plain gradient": plain,
            "scores": partial(compute_trajectory_scores, policy, trajectories),
            "aggrevated, closed form": partial(natural, policy, trajectories, gradient, solve_closed_form),
            "aggrevated, conjugate gradient": partial(
                natural, policy, trajectories, gradient, solve_conjugate_gradient
            ),
            "Hessian-vector CG": partial(hessian_vector, policy, trajectories, gradient),
        }.items():
            contenders[case, name] = partial(once, work)
    spent = interleave.interleave(contenders, options.rounds, options.seconds)
    rows = []
    targets = []
    for (case, name), seconds in spent.items():
        in_gradients = interleave.ratios(seconds, spent[case, "plain gradient"])
        if name == "plain gradient":
            rows.append(interleave.summary(case, name, "ms", [1000 * s for s in seconds]))
        else:
            rows.append(interleave.summary(case, name, "gradients", in_gradients))
        if name == "aggrevated, closed form":
            faster = interleave.ratios(spent[case, "Hessian-vector CG"], seconds)
            targets.append(interleave.at_most(case, "direction, in gradients", 3.5, in_gradients))
            targets.append(interleave.at_least(case, "speed / Hessian-vector CG", 4, faster))
    interleave.report("Natural-gradient direction", rows, targets, options)


if __name__ == "__main__":
    main()
