"""Queries of experts, with checks of shape, type and finiteness of every result."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UserCodeError
from aggrevated.core.user_code import call_user_code, check_finite, check_numeric_array, to_array
from aggrevated.experts import DiscreteQExpert, Expert, StateActionQExpert, StateValueExpert

WEIGHTS_REMEDY = "check its weights, and that it was made for this simulator"


def query_actions(expert: Expert, states: Array, t: int, space: Discrete | Box) -> Array:
    """Return π*(s) in the states [n, ...] at time t: integers [n] for discrete actions, else vectors [n, A].

    Vectors outside the bounds are not an error here: the simulator handles them.
    """
    part = describe_expert_name(expert)
    n = len(states)
    try:
        result = call_user_code(part, "act", lambda: expert.act(states, t), n)
        if isinstance(space, Discrete):
            return check_discrete_actions(part, result, n, int(space.n))
        actions = check_numeric_array(part, "actions", result, (n, *space.shape), "fix its act")
        return check_finite(part, "actions", actions, WEIGHTS_REMEDY)
    except UserCodeError as error:
        raise error.add_position(step=t) from error.__cause__


def describe_expert_name(expert: Expert) -> str:
    """Return how errors call an expert."""
    return f"the expert {getattr(expert, 'name', type(expert).__name__)}"


def check_discrete_actions(part: str, result: object, n: int, count: int) -> Array:
    """Return a result of `act` as integers [n] in 0, …, count − 1, or raise a `UserCodeError`."""
    actions = check_numeric_array(part, "actions", result, (n,), "fix its act")
    actions = check_finite(part, "actions", actions, WEIGHTS_REMEDY)
    if actions.dtype.kind in "iu":
        wrong = (actions < 0) | (actions >= count)
    else:
        wrong = (actions < 0) | (actions >= count) | (actions != np.floor(actions))
    if wrong.any():
        row = int(wrong.argmax())
        remedy = f"actions are integers from 0 to {count - 1}: fix its act"
        raise UserCodeError(part, f"chose action {actions[row]} of {count}", remedy, row=row)
    return actions if actions.dtype.kind in "iu" else actions.astype(np.int64)


def query_q_values(expert: DiscreteQExpert, states: Array, count: int | None = None) -> Array:
    """Return Q*(s, a) [n, A] of every action in the states [n, ...]; `count` is A if it is known."""
    part = describe_expert_name(expert)
    n = len(states)
    result = to_array(part, "costs-to-go", call_user_code(part, "q", lambda: expert.q(states), n), "fix its q")
    width = count if count is not None else result.shape[-1] if result.ndim else 0
    costs = check_numeric_array(part, "costs-to-go", result, (n, width), "fix its q")
    return check_finite(part, "costs-to-go", costs, WEIGHTS_REMEDY)


def query_state_action_q(expert: StateActionQExpert, states: Array, actions: Array) -> Array:
    """Return Q*(s, a) [n] of one action in each of the states [n, ...]."""
    part = describe_expert_name(expert)
    n = len(states)
    result = call_user_code(part, "q_of", lambda: expert.q_of(states, actions), n)
    costs = check_numeric_array(part, "costs-to-go", result, (n,), "fix its q_of")
    return check_finite(part, "costs-to-go", costs, WEIGHTS_REMEDY)


def query_q_per_action(expert: StateActionQExpert, states: Array, count: int) -> Array:
    """Return Q*(s, a) [n, count] of the actions 0, …, count − 1, by one query of `q_of` for each action."""
    columns = [query_state_action_q(expert, states, np.full(len(states), action)) for action in range(count)]
    return np.stack(columns, axis=1)


def query_state_values(expert: StateValueExpert, states: Array) -> Array:
    """Return V*(s) [n] of the states [n, ...]."""
    part = describe_expert_name(expert)
    n = len(states)
    result = call_user_code(part, "v", lambda: expert.v(states), n)
    values = check_numeric_array(part, "values", result, (n,), "fix its v")
    return check_finite(part, "values", values, WEIGHTS_REMEDY)
