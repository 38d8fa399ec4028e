"""Whole episodes in one compiled loop, for simulators and actors that have a compiled form.

The results equal those of `roll_in` step by step, bit for bit, since both use the same functions.
"""

from dataclasses import dataclass, field

import numpy as np

from aggrevated.actors import Actor
from aggrevated.actors.feed_forward import FeedForwardActor, compute_network_row
from aggrevated.actors.recurrent import NumpyLSTM, RecurrentActor, update_lstm_row
from aggrevated.actors.samplers import CategoricalSampler
from aggrevated.actors.window import ActionHistoryActor
from aggrevated.core.arrays import Array
from aggrevated.core.rng import RandomStream
from aggrevated.kernels.elementary_functions import gumbel_scalar
from aggrevated.kernels.linear_algebra import add_row, copy_row, njit_cached
from aggrevated.kernels.numpy_rng import fill_uniforms
from aggrevated.simulators import Simulator
from aggrevated.simulators.compiled import CompiledForm, find_compiled_form, observe_row, reset_row, step_row

ACTIONS = np.uint64(RandomStream.ACTIONS)
NOISE_BLOCK_STEPS = 16  # steps whose noise is drawn at once, for speed


@dataclass(frozen=True)
class CompiledEpisodes:
    """Recorded episodes [K, T, ...]; without a record of the steps, only lengths and total costs (T = 1)."""

    states: Array
    observations: Array
    actions: Array
    costs: Array
    lengths: Array = field(repr=False)  # int [K]
    totals: Array = field(repr=False)  # [K]: Σ_t c_t

    @classmethod
    def allocate(cls, form: CompiledForm, count: int, length: int) -> "CompiledEpisodes":
        return cls(
            np.zeros((count, length, form.state)),
            np.zeros((count, length, len(form.columns)), np.float32),
            np.zeros((count, length), np.int64),
            np.zeros((count, length)),
            np.zeros(count, np.int64),
            np.zeros(count),
        )


def run_compiled_episodes(
    simulator: Simulator, actor: Actor | None, seeds: Array, deterministic: bool, keep: bool = True
) -> CompiledEpisodes | None:
    """Run one episode per seed; return None if simulator or actor have no compiled form."""
    form = find_compiled_form(simulator)
    history_size = 0
    if isinstance(actor, ActionHistoryActor):
        history_size = actor.actions
        actor = actor.inner
    if form is None or type(actor) not in (FeedForwardActor, RecurrentActor):
        return None
    assert isinstance(actor, FeedForwardActor | RecurrentActor)
    if type(actor.sampler) is not CategoricalSampler or not is_all_float32(actor):
        return None
    episodes = CompiledEpisodes.allocate(form, len(seeds), simulator.horizon if keep else 1)
    outputs = (
        episodes.states, episodes.observations, episodes.actions, episodes.costs, episodes.lengths, episodes.totals,
    )  # fmt: skip
    seeds = np.asarray(seeds, np.uint64)
    columns = form.columns
    if isinstance(actor, FeedForwardActor):
        weights = actor.network.weights
        biases = actor.network.biases
        layers = np.empty((2, max(len(bias) for bias in biases)), np.float32)
        relu = actor.network.activation == "relu"
        network = weights, biases, relu, layers
        rollout_mlp(form.number, form.width, columns, seeds, simulator.horizon, deterministic, *network, *outputs)
    else:
        cell = actor.cell
        assert isinstance(cell, NumpyLSTM)
        weights = cell.w, cell.u, cell.b, actor.weight, actor.bias
        rollout_lstm(
            form.number, form.width, columns, seeds, simulator.horizon, deterministic, history_size, *weights, *outputs
        )
    return episodes


def is_all_float32(actor: FeedForwardActor | RecurrentActor) -> bool:
    """Return whether all weights of the actor are float32."""
    if isinstance(actor, FeedForwardActor):
        return all(array.dtype == np.float32 for array in (*actor.network.weights, *actor.network.biases))
    return isinstance(actor.cell, NumpyLSTM) and actor.cell.w.dtype == actor.weight.dtype == np.float32


@njit_cached
def rollout_mlp(  # type: ignore[no-untyped-def]
    simulator, width, columns, seeds, horizon, deterministic, weights, biases, relu, layers,
    states, observations, actions, costs, lengths, totals,
):  # fmt: skip
    state = np.empty(states.shape[2])
    full_observation = np.empty(width, np.float32)
    numbers = np.empty(4, np.uint64)
    choices = len(biases[-1])
    noise = np.zeros(NOISE_BLOCK_STEPS * choices, np.float32)
    observation = np.empty(len(columns), np.float32)
    keep = states.shape[1] == horizon
    for k in range(len(seeds)):
        reset_row(simulator, seeds[k], state)
        for t in range(horizon):
            observe_into(simulator, state, full_observation, columns, observation)
            parameters = compute_network_row(observation, weights, biases, relu, layers)
            if not deterministic:
                fill_gumbel_noise(seeds[k], horizon, t, choices, noise, numbers)
            actions[k, t if keep else 0] = compute_gumbel_argmax(parameters, noise, t, choices)
            if record_step(
                simulator, k, t, keep, state, observation, states, observations, actions, costs, lengths, totals
            ):
                break


@njit_cached
def rollout_lstm(  # type: ignore[no-untyped-def]
    simulator, width, columns, seeds, horizon, deterministic, history_size, w, u, b, weight, bias,
    states, observations, actions, costs, lengths, totals,
):  # fmt: skip
    state = np.empty(states.shape[2])
    full_observation = np.empty(width, np.float32)
    numbers = np.empty(4, np.uint64)
    choices = len(bias)
    gates = np.empty_like(b)
    parameters = np.empty_like(bias)
    noise = np.zeros(NOISE_BLOCK_STEPS * choices, np.float32)
    inputs = np.empty(len(columns) + history_size, np.float32)
    observation = inputs[: len(columns)]
    previous = inputs[len(columns) :]
    memory = np.empty(2 * len(u), np.float32)
    keep = states.shape[1] == horizon
    for k in range(len(seeds)):
        reset_row(simulator, seeds[k], state)
        memory[:] = 0
        previous[:] = 0
        for t in range(horizon):
            observe_into(simulator, state, full_observation, columns, observation)
            update_lstm_row(inputs, memory, w, u, b, gates)
            copy_row(parameters, bias)
            add_row(parameters, memory, weight)
            if not deterministic:
                fill_gumbel_noise(seeds[k], horizon, t, choices, noise, numbers)
            action = compute_gumbel_argmax(parameters, noise, t, choices)
            actions[k, t if keep else 0] = action
            for a in range(history_size):
                previous[a] = a == action
            if record_step(
                simulator, k, t, keep, state, observation, states, observations, actions, costs, lengths, totals
            ):
                break


@njit_cached
def observe_into(simulator, state, full_observation, columns, observation):  # type: ignore[no-untyped-def]
    """Write the learner's observation of a state."""
    observe_row(simulator, state, full_observation)
    for i in range(len(columns)):
        observation[i] = full_observation[columns[i]]


@njit_cached
def record_step(  # type: ignore[no-untyped-def]
    simulator, k, t, keep, state, observation, states, observations, actions, costs, lengths, totals,
):  # fmt: skip
    """Take the action of step t of trajectory k and record it; return whether the episode has ended."""
    index = t if keep else 0
    if keep:
        for i in range(len(state)):
            states[k, t, i] = state[i]
        for i in range(len(observation)):
            observations[k, t, i] = observation[i]
    cost, done = step_row(simulator, state, actions[k, index])
    costs[k, index] = cost
    totals[k] += cost
    lengths[k] = t + 1
    return done


@njit_cached
def fill_gumbel_noise(seed, horizon, t, choices, noise, numbers):  # type: ignore[no-untyped-def]
    """Write the Gumbel noise of a block of steps if step t is its first.

    The stream of a trajectory starts with H numbers for the choice of the expert, as in `RollInPolicy.start`.
    """
    if t % NOISE_BLOCK_STEPS == 0:
        fill_uniforms(seed, ACTIONS, horizon + t * choices, noise, numbers)
        for i in range(len(noise)):
            noise[i] = gumbel_scalar(noise[i])


@njit_cached
def compute_gumbel_argmax(parameters, noise, t, choices):  # type: ignore[no-untyped-def]
    """Return argmax_a (parameter_a + noise_a), the first of equals and NaN first, as NumPy does."""
    offset = (t % NOISE_BLOCK_STEPS) * choices
    best = 0
    maximum = parameters[0] + noise[offset]
    for a in range(1, choices):
        value = parameters[a] + noise[offset + a]
        if value > maximum or (value != value and maximum == maximum):
            best = a
            maximum = value
    return best
