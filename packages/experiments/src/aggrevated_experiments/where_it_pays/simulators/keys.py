"""A grid world of rooms behind locked doors, whose keys lie about: other rooms in every episode, by its seed."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from gymnasium.spaces import Box, Discrete

from aggrevated.core.arrays import Array
from aggrevated.kernels.linear_algebra import njit_cached
from aggrevated.kernels.numpy_rng import sample_uniform, seed_pcg64

COLOURS = 3  # of doors and keys, at most
VIEW_RADIUS = 2  # cells that are seen in each direction
WINDOW = (2 * VIEW_RADIUS + 1) ** 2
MIN_ROOM_SIDE = 2  # side of a room
# Places in a state; those from GOAL on are the layout of the episode, which no step changes.
POSITION = 0
CARRIED = 1
OPENED = 2
GOAL = 3
KEY = GOAL + 1
DOOR = GOAL + 1 + COLOURS
CELLS = DOOR + COLOURS
NONE = -1
COMPASS = 4  # numbers: how far down and to the right, and the signs of both
OF_COLOUR = 2 * COMPASS + 3
OBSERVATION_SIZE = WINDOW + COMPASS + COLOURS * OF_COLOUR
ACTIONS = 4  # up, down, left, right


@dataclass(frozen=True)
class Keys:
    """State [n, 10 + cells] int16: where one is, keys carried and doors opened as bits, goal, keys, doors, and walls.

    Cost 1 for each step until the goal. Keys are taken, and doors opened, by walking there; a step into a wall, or into
    a door without its key, is a step on the spot.
    """

    horizon: int = 100
    size: int = 8  # the side of the grid, without the walls around it
    doors: int = 2
    name: str = "keys"
    action_space = Discrete(ACTIONS)
    observation_space = Box(-1.0, 1.0, (OBSERVATION_SIZE,), np.float32)

    def __post_init__(self) -> None:
        assert 2 * MIN_ROOM_SIDE + 1 <= self.size <= 100 and 0 <= self.doors <= COLOURS, (self.size, self.doors)

    @cached_property
    def side(self) -> int:
        """Of the grid with its walls, so wide that a window never looks beyond them."""
        return self.size + 2 * VIEW_RADIUS

    def reset(self, seeds: Array) -> Array:
        """Rooms, doors, keys, start and goal, drawn from PCG64(seed); the goal is in the room that opens last."""
        states = np.empty((len(seeds), CELLS + self.side**2), np.int16)
        _reset_states(np.asarray(seeds, np.uint64), self.size, self.doors, states)
        return states

    def observe(self, state: Array) -> Array:
        """[n, 62] float32: what is barred in the 5 × 5 cells around, where the goal is, and of each colour whether its
        key lies somewhere, is carried, and its door was opened, and where key and door are.
        """
        observation = np.zeros((len(state), OBSERVATION_SIZE), np.float32)
        _write_observations(np.ascontiguousarray(state), self.size, observation)
        return observation

    def step(self, state: Array, action: Array) -> tuple[Array, Array, Array]:
        """One cell up, down, left or right."""
        following = np.array(state, order="C")
        done = np.empty(len(state), np.bool_)
        _step_states(following, self.side, action, done)
        return following, np.ones(len(state)), done


@dataclass(frozen=True)
class MaskedKeys(Keys):
    """The same where no step is one on the spot: what would be is not legal."""

    def action_mask(self, state: Array) -> Array:
        """[n, 4]: where one can go."""
        open_to = np.empty((len(state), ACTIONS), np.bool_)
        _write_action_masks(np.ascontiguousarray(state), self.side, open_to)
        return open_to


@njit_cached
def sample_below(generator, count):  # type: ignore[no-untyped-def]
    """A whole number from 0 to count − 1."""
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
    across = np.empty(COLOURS, np.int64)  # from a door to the room on its one side, and back to that on the other
    count = 1
    for colour in range(doors):
        count += split_room(generator, rooms, count, side, state, across, colour)
    put_objects(generator, rooms, count, side, state, across)


@njit_cached
def split_room(generator, rooms, count, side, state, across, colour):  # type: ignore[no-untyped-def]
    """Put a wall with a door of this colour through one of the rooms; how many that makes more, 0 where none is wide.

    A wall that would end at a door would bar it.
    """
    cells = state[CELLS:]
    lines = np.empty((2 * side * (COLOURS + 1), 3), np.int64)
    found = 0
    for room in range(count):
        for axis in range(2):
            along, over = (side, 1) if axis == 0 else (1, side)
            for line in range(rooms[room, axis] + MIN_ROOM_SIDE, rooms[room, axis + 2] - MIN_ROOM_SIDE + 1):
                first = line * along + (rooms[room, 1 - axis] - 1) * over
                last = line * along + (rooms[room, 3 - axis] + 1) * over
                if cells[first] == 1 and cells[last] == 1:
                    lines[found, 0] = room
                    lines[found, 1] = axis
                    lines[found, 2] = line
                    found += 1
    if found == 0:
        return 0
    room, axis, line = lines[sample_below(generator, found)]
    along, over = (side, 1) if axis == 0 else (1, side)
    low = rooms[room, 1 - axis]
    high = rooms[room, 3 - axis]
    for place in range(low, high + 1):
        cells[line * along + place * over] = 1
    door = line * along + (low + sample_below(generator, high - low + 1)) * over
    cells[door] = 0
    state[DOOR + colour] = door
    across[colour] = along
    rooms[count] = rooms[room]
    rooms[room, axis + 2] = line - 1
    rooms[count, axis] = line + 1
    return 1


@njit_cached
def put_objects(generator, rooms, count, side, state, across):  # type: ignore[no-untyped-def]
    """Put start, keys and goal where the goal can be reached: the key of a door lies in a room that opens before it."""
    opened = np.zeros(COLOURS + 1, np.bool_)
    last = sample_below(generator, count)
    opened[last] = True
    state[POSITION] = sample_free_cell(generator, rooms[last], side, state)
    for _ in range(count - 1):
        colour = -1
        leads_to = -1
        met = 0
        for one in range(count - 1):
            here = find_room(rooms, count, side, state[DOOR + one] - across[one])
            there = find_room(rooms, count, side, state[DOOR + one] + across[one])
            if opened[here] != opened[there]:
                met += 1
                if sample_below(generator, met) == 0:  # each of those met so far is as likely
                    colour = one
                    leads_to = there if opened[here] else here
        room = sample_below(generator, count)
        while not opened[room]:
            room = sample_below(generator, count)
        state[KEY + colour] = sample_free_cell(generator, rooms[room], side, state)
        opened[leads_to] = True
        last = leads_to
    state[GOAL] = sample_free_cell(generator, rooms[last], side, state)


@njit_cached
def find_room(rooms, count, side, cell):  # type: ignore[no-untyped-def]
    """Which room a cell is in."""
    y = cell // side
    x = cell % side
    for room in range(count):
        if rooms[room, 0] <= y <= rooms[room, 2] and rooms[room, 1] <= x <= rooms[room, 3]:
            return room
    return -1


@njit_cached
def sample_free_cell(generator, room, side, state):  # type: ignore[no-untyped-def]
    """A cell of a room where nothing is yet: a room has four at least, and no more than start and three keys."""
    while True:
        y = room[0] + sample_below(generator, room[2] - room[0] + 1)
        x = room[1] + sample_below(generator, room[3] - room[1] + 1)
        cell = y * side + x
        taken = state[POSITION] == y * side + x
        for colour in range(COLOURS):
            taken |= state[KEY + colour] == cell
        if not taken:
            return cell


@njit_cached
def is_barred(state, carried, cell):  # type: ignore[no-untyped-def]
    """Whether nobody who carries these keys can go there."""
    closed = state[CELLS + cell] == 1
    for colour in range(COLOURS):
        closed |= state[DOOR + colour] == cell and not carried & (1 << colour)
    return closed


@njit_cached
def move(state, side, position, carried, action):  # type: ignore[no-untyped-def]
    """(where an action leads to from a position with these keys, the keys carried then)."""
    there = position
    if action == 0:
        there -= side
    elif action == 1:
        there += side
    elif action == 2:
        there -= 1
    else:
        there += 1
    if is_barred(state, carried, there):
        return position, carried
    for colour in range(COLOURS):
        if state[KEY + colour] == there:
            carried |= 1 << colour
    return there, carried


@njit_cached
def write_direction(observation, place, here, cell, side):  # type: ignore[no-untyped-def]
    """Write in which direction a cell is, and how far."""
    down = cell // side - here // side
    right = cell % side - here % side
    size = side - 2 * VIEW_RADIUS
    observation[place] = down / size
    observation[place + 1] = right / size
    observation[place + 2] = np.sign(down)
    observation[place + 3] = np.sign(right)


@njit_cached
def write_observation(state, size, observation):  # type: ignore[no-untyped-def]
    """Write what the learner sees of a state, float32 [62], over zeros."""
    side = size + 2 * VIEW_RADIUS
    here = int(state[POSITION])
    place = 0
    for y in range(-VIEW_RADIUS, VIEW_RADIUS + 1):
        for x in range(-VIEW_RADIUS, VIEW_RADIUS + 1):
            observation[place] = is_barred(state, state[CARRIED], here + y * side + x)
            place += 1
    write_direction(observation, place, here, int(state[GOAL]), side)
    place += COMPASS
    for colour in range(COLOURS):
        if state[DOOR + colour] == NONE:
            break
        carried = bool(state[CARRIED] & (1 << colour))
        opened = bool(state[OPENED] & (1 << colour))
        observation[place] = not carried
        observation[place + 1] = carried
        observation[place + 2] = opened
        if not carried:
            write_direction(observation, place + 3, here, int(state[KEY + colour]), side)
        write_direction(observation, place + 3 + COMPASS, here, int(state[DOOR + colour]), side)
        place += OF_COLOUR


@njit_cached
def _reset_states(seeds, size, doors, states):  # type: ignore[no-untyped-def]
    for lane in range(len(seeds)):
        reset_state(seeds[lane], size, doors, states[lane])


@njit_cached
def _write_observations(states, size, observations):  # type: ignore[no-untyped-def]
    for lane in range(len(states)):
        write_observation(states[lane], size, observations[lane])


@njit_cached
def _write_action_masks(states, side, open_to):  # type: ignore[no-untyped-def]
    for lane in range(len(states)):
        state = states[lane]
        for action in range(ACTIONS):
            there, _ = move(state, side, int(state[POSITION]), int(state[CARRIED]), action)
            open_to[lane, action] = there != state[POSITION]


@njit_cached
def _step_states(states, side, actions, done):  # type: ignore[no-untyped-def]
    for lane in range(len(states)):
        state = states[lane]
        there, carried = move(state, side, int(state[POSITION]), int(state[CARRIED]), actions[lane])
        state[POSITION] = there
        state[CARRIED] = carried
        for colour in range(COLOURS):
            if state[DOOR + colour] == there:
                state[OPENED] |= 1 << colour
        done[lane] = there == state[GOAL]
