"""The one place where experts are asked: what they answer is what it must be, or an error that says what it is."""

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.core.user_code import answer, as_array, finite, numbers
from aggrevated.errors import PartError
from aggrevated.experts import ActionValueExpert, CriticExpert, Expert, ValueExpert

CHECK = "check its weights, and that it was made for this simulator"


def actions_of(expert: Expert, states: Array, t: int, space: Discrete | Box) -> Array:
    """π*(s) in the states [n, ...] at time t: whole numbers [n] of a finite set, or vectors [n, A].

    What becomes of vectors beyond the bounds is the simulator's affair.
    """
    part, n = called(expert), len(states)
    try:
        given = answer(part, "act", lambda: expert.act(states, t), n)
        if isinstance(space, Discrete):
            return chosen(part, given, n, int(space.n))
        return finite(part, "actions", numbers(part, "actions", given, (n, *space.shape), "mend its act"), CHECK)
    except PartError as error:
        raise error.at(step=t) from error.__cause__


def called(expert: Expert) -> str:
    """What errors call it."""
    return f"the expert {getattr(expert, 'name', type(expert).__name__)}"


def chosen(part: str, given: object, n: int, count: int) -> Array:
    """Which of `count` actions, [n]."""
    actions = numbers(part, "actions", given, (n,), "mend its act")
    actions = finite(part, "actions", actions, CHECK)
    if actions.dtype.kind in "iu":
        wrong = (actions < 0) | (actions >= count)
    else:
        wrong = (actions < 0) | (actions >= count) | (actions != np.floor(actions))
    if wrong.any():
        row = int(wrong.argmax())
        remedy = f"its actions are whole numbers from 0 to {count - 1}: mend its act"
        raise PartError(part, f"chose action {actions[row]} of {count}", remedy, row=row)
    return actions if actions.dtype.kind in "iu" else actions.astype(np.int64)


def costs_of(expert: ValueExpert, states: Array, count: int | None = None) -> Array:
    """Q*(s, a) of every action in the states [n, ...]: [n, A]. `count` is A, where it is known."""
    part, n = called(expert), len(states)
    given = as_array(part, "costs-to-go", answer(part, "q", lambda: expert.q(states), n), "mend its q")
    width = count if count is not None else given.shape[-1] if given.ndim else 0
    return finite(part, "costs-to-go", numbers(part, "costs-to-go", given, (n, width), "mend its q"), CHECK)


def costs_of_taken(expert: ActionValueExpert, states: Array, actions: Array) -> Array:
    """Q*(s, a) of one action in each of the states [n, ...]: [n]."""
    part, n = called(expert), len(states)
    given = answer(part, "q_of", lambda: expert.q_of(states, actions), n)
    return finite(part, "costs-to-go", numbers(part, "costs-to-go", given, (n,), "mend its q_of"), CHECK)


def costs_of_each(expert: ActionValueExpert, states: Array, count: int) -> Array:
    """The same of each of `count` actions in every state: [n, A]."""
    asked = [costs_of_taken(expert, states, np.full(len(states), action)) for action in range(count)]
    return np.stack(asked, axis=1)


def values_of(expert: CriticExpert, states: Array) -> Array:
    """V*(s) of the states [n, ...]: [n]."""
    part, n = called(expert), len(states)
    given = answer(part, "v", lambda: expert.v(states), n)
    return finite(part, "values", numbers(part, "values", given, (n,), "mend its v"), CHECK)
