"""Simulator of a grid world with locked doors and keys: other rooms in every episode, drawn from its seed."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated.kernels.numpy_rng import sample_uniform, seed_pcg64

COLOURS = 3  # largest number of doors and of keys
VIEW_RADIUS = 2  # visible cells in each direction
WINDOW = (2 * VIEW_RADIUS + 1) ** 2
MIN_ROOM_SIDE = 2  # cells
# Columns of a state; those from GOAL on are the layout of the episode, which steps do not change.
POSITION = 0
CARRIED = 1
OPENED = 2
GOAL = 3
KEY = GOAL + 1
DOOR = GOAL + 1 + COLOURS
CELLS = DOOR + COLOURS
NONE = -1
COMPASS = 4  # numbers: distance down and to the right, and the signs of both
OF_COLOUR = 2 * COMPASS + 3
OBSERVATION_SIZE = WINDOW + COMPASS + COLOURS * OF_COLOUR
ACTIONS = 4  # up, down, left, right


@dataclass(frozen=True)
class Keys:
    """State [n, 10 + cells] int16: position, carried keys, opened doors, goal, keys, doors, and walls.

    Carried keys and opened doors are bits. Each step until the goal costs 1. Walking onto keys takes them,
    and walking through doors opens them. A move into a wall, or into a door without its key, stays in
    place.
    """

    horizon: int = 100
    size: int = 8  # side of the grid without the walls around it
    doors: int = 2
    name: str = "keys"
    action_space = Discrete(ACTIONS)
    observation_space = Box(-1.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    def __post_init__(self) -> None:
        assert 2 * MIN_ROOM_SIDE + 1 <= self.size <= 100 and 0 <= self.doors <= COLOURS, (self.size, self.doors)

    @cached_property
    def side(self) -> int:
        """Return the side of the grid with its walls, so wide that no window extends beyond them."""
        return self.size + 2 * VIEW_RADIUS

    def reset(self, seeds: Array) -> Array:
        """Return states with rooms, doors, keys, start and goal from PCG64(seed).

        The goal is in the room that opens last.
        """
        states = np.empty((len(seeds), CELLS + self.side**2), np.int16)
        _reset_states(np.asarray(seeds, np.uint64), self.size, self.doors, states)
        return states

    def observe(self, state: Array) -> Array:
        """Return observations [n, 62] float32.

        They hold the barred cells in the surrounding 5 × 5, the direction of the goal, and for each color
        whether its key lies somewhere or is carried, whether its door was opened, and the directions of key
        and door.
        """
        observation = np.zeros((len(state), OBSERVATION_SIZE), np.float32)
        _write_observations(np.ascontiguousarray(state), self.size, observation)
        return observation

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """Return next states, costs and whether the goal was reached, after moves up, down, left or right."""
        following = np.array(state, order="C")
        done = np.empty(len(state), np.bool_)
        _step_states(following, self.side, action, done)
        return following, np.ones(len(state)), done


@dataclass(frozen=True)
class MaskedKeys(Keys):
    """A variant of `Keys` in which moves that would stay in place are illegal."""

    def action_mask(self, state: Array) -> Array:
        """Return which moves lead to another cell, [n, 4]."""
        open_to = np.empty((len(state), ACTIONS), np.bool_)
        _write_action_masks(np.ascontiguousarray(state), self.side, open_to)
        return open_to


@njit_cached
def sample_below(generator, count):  # type: ignore[no-untyped-def]
    """Return a random integer from 0 to count − 1."""
    return int(sample_uniform(generator, 0.0, count))


@njit_cached
def reset_state(seed, size, doors, state):  # type: ignore[no-untyped-def]
    """Write the first state of the episode with this seed."""
    generator = np.empty(4, np.uint64)
    seed_pcg64(seed, generator)
    side = size + 2 * VIEW_RADIUS
    state[:CELLS] = NONE
    state[POSITION] = 0
    state[CARRIED] = 0
    state[OPENED] = 0
    rooms = np.empty((COLOURS + 1, 4), np.int64)  # top, left, bottom, right
    rooms[0, :2] = VIEW_RADIUS
    rooms[0, 2:] = VIEW_RADIUS + size - 1
    cells = state[CELLS:]
    cells[:] = 1
    for y in range(rooms[0, 0], rooms[0, 2] + 1):
        for x in range(rooms[0, 1], rooms[0, 3] + 1):
            cells[y * side + x] = 0
    across = np.empty(
        COLOURS, np.int64
    )  # step from a door into the room behind it; minus the step leads into the other
    count = 1
    for color in range(doors):
        count += split_room(generator, rooms, count, side, state, across, color)
    put_objects(generator, rooms, count, side, state, across)


@njit_cached
def split_room(generator, rooms, count, side, state, across, color):  # type: ignore[no-untyped-def]
    """Put a wall with a door of this color through a room, and return 1, or 0 if all rooms are too small.

    Walls do not end at doors, which they would block.
    """
    cells = state[CELLS:]
    lines = np.empty((2 * side * (COLOURS + 1), 3), np.int64)
    n_lines = 0
    for room in range(count):
        for axis in range(2):
            along, over = (side, 1) if axis == 0 else (1, side)
            for line in range(rooms[room, axis] + MIN_ROOM_SIDE, rooms[room, axis + 2] - MIN_ROOM_SIDE + 1):
                first = line * along + (rooms[room, 1 - axis] - 1) * over
                last = line * along + (rooms[room, 3 - axis] + 1) * over
                if cells[first] == 1 and cells[last] == 1:
                    lines[n_lines, 0] = room
                    lines[n_lines, 1] = axis
                    lines[n_lines, 2] = line
                    n_lines += 1
    if n_lines == 0:
        return 0
    room, axis, line = lines[sample_below(generator, n_lines)]
    along, over = (side, 1) if axis == 0 else (1, side)
    low = rooms[room, 1 - axis]
    high = rooms[room, 3 - axis]
    for cell in range(low, high + 1):
        cells[line * along + cell * over] = 1
    door = line * along + (low + sample_below(generator, high - low + 1)) * over
    cells[door] = 0
    state[DOOR + color] = door
    across[color] = along
    rooms[count] = rooms[room]
    rooms[room, axis + 2] = line - 1
    rooms[count, axis] = line + 1
    return 1


@njit_cached
def put_objects(generator, rooms, count, side, state, across):  # type: ignore[no-untyped-def]
    """Put start, keys and goal so that the goal is reachable: a door's key lies in an earlier room."""
    opened = np.zeros(COLOURS + 1, np.bool_)
    last = sample_below(generator, count)
    opened[last] = True
    state[POSITION] = sample_free_cell(generator, rooms[last], side, state)
    for _ in range(count - 1):
        color = -1
        leads_to = -1
        n_candidates = 0
        for door in range(count - 1):
            room_before = find_room(rooms, count, side, state[DOOR + door] - across[door])
            room_behind = find_room(rooms, count, side, state[DOOR + door] + across[door])
            if opened[room_before] != opened[room_behind]:
                n_candidates += 1
                if sample_below(generator, n_candidates) == 0:  # all are equally likely
                    color = door
                    leads_to = room_behind if opened[room_before] else room_before
        room = sample_below(generator, count)
        while not opened[room]:
            room = sample_below(generator, count)
        state[KEY + color] = sample_free_cell(generator, rooms[room], side, state)
        opened[leads_to] = True
        last = leads_to
    state[GOAL] = sample_free_cell(generator, rooms[last], side, state)


@njit_cached
def find_room(rooms, count, side, cell):  # type: ignore[no-untyped-def]
    """Return the room of a cell; −1 for walls and doors."""
    y = cell // side
    x = cell % side
    for room in range(count):
        if rooms[room, 0] <= y <= rooms[room, 2] and rooms[room, 1] <= x <= rooms[room, 3]:
            return room
    return -1


@njit_cached
def sample_free_cell(generator, room, side, state):  # type: ignore[no-untyped-def]
    """Return a random free cell of a room.

    Rooms have at least four cells, and at most start and three keys take one each.
    """
    while True:
        y = room[0] + sample_below(generator, room[2] - room[0] + 1)
        x = room[1] + sample_below(generator, room[3] - room[1] + 1)
        cell = y * side + x
        is_taken = state[POSITION] == y * side + x
        for color in range(COLOURS):
            is_taken |= state[KEY + color] == cell
        if not is_taken:
            return cell


@njit_cached
def is_barred(state, carried, cell):  # type: ignore[no-untyped-def]
    """Return whether a cell cannot be entered with these keys."""
    closed = state[CELLS + cell] == 1
    for color in range(COLOURS):
        closed |= state[DOOR + color] == cell and not carried & (1 << color)
    return closed


@njit_cached
def move(state, side, position, carried, action):  # type: ignore[no-untyped-def]
    """Return the cell to which an action leads with these keys, and the keys carried then."""
    cell = position
    if action == 0:
        cell -= side
    elif action == 1:
        cell += side
    elif action == 2:
        cell -= 1
    else:
        cell += 1
    if is_barred(state, carried, cell):
        return position, carried
    for color in range(COLOURS):
        if state[KEY + color] == cell:
            carried |= 1 << color
    return cell, carried


@njit_cached
def write_direction(observation, start, position, cell, side):  # type: ignore[no-untyped-def]
    """Write the direction and distance of a cell, from column `start` on."""
    down = cell // side - position // side
    right = cell % side - position % side
    size = side - 2 * VIEW_RADIUS
    observation[start] = down / size
    observation[start + 1] = right / size
    observation[start + 2] = np.sign(down)
    observation[start + 3] = np.sign(right)


@njit_cached
def write_observation(state, size, observation):  # type: ignore[no-untyped-def]
    """Write the observation of a state, float32 [62], over zeros."""
    side = size + 2 * VIEW_RADIUS
    position = int(state[POSITION])
    column = 0
    for y in range(-VIEW_RADIUS, VIEW_RADIUS + 1):
        for x in range(-VIEW_RADIUS, VIEW_RADIUS + 1):
            observation[column] = is_barred(state, state[CARRIED], position + y * side + x)
            column += 1
    write_direction(observation, column, position, int(state[GOAL]), side)
    column += COMPASS
    for color in range(COLOURS):
        if state[DOOR + color] == NONE:
            break
        carried = bool(state[CARRIED] & (1 << color))
        opened = bool(state[OPENED] & (1 << color))
        observation[column] = not carried
        observation[column + 1] = carried
        observation[column + 2] = opened
        if not carried:
            write_direction(observation, column + 3, position, int(state[KEY + color]), side)
        write_direction(observation, column + 3 + COMPASS, position, int(state[DOOR + color]), side)
        column += OF_COLOUR


@njit_cached
def _reset_states(seeds, size, doors, states):  # type: ignore[no-untyped-def]
    for row in range(len(seeds)):
        reset_state(seeds[row], size, doors, states[row])


@njit_cached
def _write_observations(states, size, observations):  # type: ignore[no-untyped-def]
    for row in range(len(states)):
        write_observation(states[row], size, observations[row])


@njit_cached
def _write_action_masks(states, side, open_to):  # type: ignore[no-untyped-def]
    for row in range(len(states)):
        state = states[row]
        for action in range(ACTIONS):
            cell, _ = move(state, side, int(state[POSITION]), int(state[CARRIED]), action)
            open_to[row, action] = cell != state[POSITION]


@njit_cached
def _step_states(states, side, actions, done):  # type: ignore[no-untyped-def]
    for row in range(len(states)):
        state = states[row]
        cell, carried = move(state, side, int(state[POSITION]), int(state[CARRIED]), actions[row])
        state[POSITION] = cell
        state[CARRIED] = carried
        for color in range(COLOURS):
            if state[DOOR + color] == cell:
                state[OPENED] |= 1 << color
        done[row] = cell == state[GOAL]
