"""A planner that looks 20 steps ahead at every step, made into a network that does as well in microseconds.

python planner.py [--seed N] [--out FOLDER] [--small]
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np

from aggrevated import MuJoCo, train

# how many plans it tries, how long they are, how long they hold an action
PLANS = 32
STEPS = 20
HOLD = 5
TEMPERATURE = 2.0  # of the weights of plans, in units of cost


def robot(horizon=100):
    """Gymnasium's Hopper-v5, many at once."""
    return MuJoCo("hopper", horizon)


class Planner:
    """Tries some plans in the simulator, and takes their mean, the cheap ones weighing most (MPPI)."""

    def __init__(self, simulator):
        self.simulator = simulator
        space = simulator.action_space
        drawn = np.random.default_rng(0).standard_normal((PLANS, STEPS // HOLD, *space.shape))
        self.plans = np.clip(drawn, space.low, space.high)  # the same at every state: an expert is a function

    def act(self, states, t):
        plan = np.tile(np.arange(PLANS), len(states))
        state = np.repeat(states, PLANS, axis=0)
        cost = np.zeros(len(state))
        going = np.arange(len(state))
        for step in range(STEPS):
            state, now, done = self.simulator.step(state, self.plans[plan[going], step // HOLD])
            cost[going] += now
            state = state[~done]
            going = going[~done]
        cost = cost.reshape(len(states), PLANS)
        weight = np.exp((cost.min(axis=1, keepdims=True) - cost) / TEMPERATURE)
        return weight @ self.plans[:, 0] / weight.sum(axis=1, keepdims=True)


def returns(policy, hopper, episodes=1000):
    """(mean, standard error) on fresh episodes of the network without its noise, as one would deploy it."""
    state = hopper.reset(np.arange(episodes) + 2**40)
    total = np.zeros(episodes)
    going = np.arange(episodes)
    for _ in range(hopper.horizon):
        state, cost, done = hopper.step(state, policy.predict(hopper.observe(state), deterministic=True)[0])
        total[going] -= cost
        state = state[~done]
        going = going[~done]
        if not len(going):
            break
    return [round(float(total.mean()), 1), round(float(total.std() / episodes**0.5), 1)]


def milliseconds(act, times):
    """What one action takes."""
    began = time.perf_counter()
    for _ in range(times):
        act()
    return 1000 * (time.perf_counter() - began) / times


def report(run, seed, hopper, small):
    """The last line: returns, what it took, and what an action takes."""
    result = run.result().to_dict()
    start = hopper.reset(np.arange(1))
    policy = run.policy
    planner = Planner(hopper)
    seen = hopper.observe(start)[0]
    slow = milliseconds(lambda: planner.act(start, 0), 20)
    fast = milliseconds(lambda: policy.predict(seen), 1000)
    print(json.dumps({
        "seed": seed,
        "expert": [round(result["expert_return"], 1), round(result["expert_standard_error"], 1)],
        "first": round(result["initial_return"], 1),
        "chosen": returns(policy, hopper, 20 if small else 1000),
        "sampled": [round(result["test_return"], 1), round(result["test_standard_error"], 1)],
        "questions": result["oracle_queries"],
        "simulator_steps": result["simulator_steps"],
        "seconds": round(result["seconds"]),
        "milliseconds": [round(slow, 1), round(fast, 3)],
    }))  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="the run's folder")
    parser.add_argument("--small", action="store_true", help="to see that it runs, not what it learns")
    given = parser.parse_args()

    usual = {"queries": 10_000, "test_episodes": 10}  # ten episodes of the planner's take a minute, too
    few = {"horizon": 10, "iterations": 2, "trajectories": 2, "validation_episodes": 4, "test_episodes": 2}
    settings = few if given.small else usual
    run = train(robot, "dagger", expert=Planner, seed=given.seed, out=given.out, **settings)
    report(run, given.seed, robot(), given.small)
