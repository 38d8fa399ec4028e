"""The one place where experts are asked: what they answer is what it must be, or an error that says what it is."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.errors import UserCodeError
from aggrevated.core.user_code import call_user_code, check_finite, check_numeric_array, to_array
from aggrevated.experts import DiscreteQExpert, Expert, StateActionQExpert, StateValueExpert

CHECK = "check its weights, and that it was made for this simulator"


def query_actions(expert: Expert, states: Array, t: int, space: Discrete | Box) -> Array:
    """π*(s) in the states [n, ...] at time t: whole numbers [n] of a finite set, or vectors [n, A].

    What becomes of vectors beyond the bounds is the simulator's affair.
    """
    part = display_name(expert)
    n = len(states)
    try:
        given = call_user_code(part, "act", lambda: expert.act(states, t), n)
        if isinstance(space, Discrete):
            return check_discrete_actions(part, given, n, int(space.n))
        return check_finite(
            part, "actions", check_numeric_array(part, "actions", given, (n, *space.shape), "mend its act"), CHECK
        )
    except UserCodeError as error:
        raise error.add_position(step=t) from error.__cause__


def display_name(expert: Expert) -> str:
    """What errors call it."""
    return f"the expert {getattr(expert, 'name', type(expert).__name__)}"


def check_discrete_actions(part: str, given: object, n: int, count: int) -> Array:
    """Which of `count` actions, [n]."""
    actions = check_numeric_array(part, "actions", given, (n,), "mend its act")
    actions = check_finite(part, "actions", actions, CHECK)
    if actions.dtype.kind in "iu":
        wrong = (actions < 0) | (actions >= count)
    else:
        wrong = (actions < 0) | (actions >= count) | (actions != np.floor(actions))
    if wrong.any():
        row = int(wrong.argmax())
        remedy = f"its actions are whole numbers from 0 to {count - 1}: mend its act"
        raise UserCodeError(part, f"chose action {actions[row]} of {count}", remedy, row=row)
    return actions if actions.dtype.kind in "iu" else actions.astype(np.int64)


def query_q_values(expert: DiscreteQExpert, states: Array, count: int | None = None) -> Array:
    """Q*(s, a) of every action in the states [n, ...]: [n, A]. `count` is A, where it is known."""
    part = display_name(expert)
    n = len(states)
    given = to_array(part, "costs-to-go", call_user_code(part, "q", lambda: expert.q(states), n), "mend its q")
    width = count if count is not None else given.shape[-1] if given.ndim else 0
    return check_finite(
        part, "costs-to-go", check_numeric_array(part, "costs-to-go", given, (n, width), "mend its q"), CHECK
    )


def query_state_action_q(expert: StateActionQExpert, states: Array, actions: Array) -> Array:
    """Q*(s, a) of one action in each of the states [n, ...]: [n]."""
    part = display_name(expert)
    n = len(states)
    given = call_user_code(part, "q_of", lambda: expert.q_of(states, actions), n)
    return check_finite(
        part, "costs-to-go", check_numeric_array(part, "costs-to-go", given, (n,), "mend its q_of"), CHECK
    )


def query_q_per_action(expert: StateActionQExpert, states: Array, count: int) -> Array:
    """The same of each of `count` actions in every state: [n, A]."""
    asked = [query_state_action_q(expert, states, np.full(len(states), action)) for action in range(count)]
    return np.stack(asked, axis=1)


def query_state_values(expert: StateValueExpert, states: Array) -> Array:
    """V*(s) of the states [n, ...]: [n]."""
    part = display_name(expert)
    n = len(states)
    given = call_user_code(part, "v", lambda: expert.v(states), n)
    return check_finite(part, "values", check_numeric_array(part, "values", given, (n,), "mend its v"), CHECK)
