"""NumPy's random numbers in compiled loops, bit-identical: PCG64 for initial states, Philox for later draws.

Making a NumPy generator takes 10 µs, as long as a hundred steps of a compiled simulator.
"""

import numpy as np

from aggrevated.kernels.linear_algebra import njit_cached

U = np.uint64
LOW32 = U(0xFFFFFFFF)
SHIFT32 = U(32)
ONE = U(1)

# Philox 4×64, ten rounds (Salmon et al., 2011)
PHILOX_M0 = U(0xD2E7470EE14C6C93)
PHILOX_M1 = U(0xCA5A826395121157)
PHILOX_W0 = U(0x9E3779B97F4A7C15)
PHILOX_W1 = U(0xBB67AE8584CAA73B)
ROUNDS = 10
TO_UNIT = np.float32(2.0**-24)

# NumPy's SeedSequence (after O'Neill's randutils), with a pool of four words
POOL = 4
INIT_A = U(0x43B0D7E5)
MULT_A = U(0x931E8875)
INIT_B = U(0x8B51F9DD)
MULT_B = U(0x58F38DED)
MIX_L = U(0xCA01F9DD)
MIX_R = U(0x4973F715)
SHIFT16 = U(16)

# PCG64, the XSL-RR variant (O'Neill, 2014)
PCG_HIGH = U(0x2360ED051FC65DA4)
PCG_LOW = U(0x4385DF649FCCF645)


@njit_cached
def multiply_high(a, b):  # type: ignore[no-untyped-def]
    """Return the upper 64 bits of a · b."""
    a0 = a & LOW32
    a1 = a >> SHIFT32
    b0 = b & LOW32
    b1 = b >> SHIFT32
    middle = a1 * b0 + ((a0 * b0) >> SHIFT32)
    other = a0 * b1 + (middle & LOW32)
    return a1 * b1 + (middle >> SHIFT32) + (other >> SHIFT32)


@njit_cached
def write_philox_block(key, stream, block, out):  # type: ignore[no-untyped-def]
    """Write the four uint64 of one Philox block to `out` [4]; `key` and `stream` are the generator's key."""
    c0 = block + ONE
    c1 = U(0)
    c2 = U(0)
    c3 = U(0)
    k0 = key
    k1 = stream
    for _ in range(ROUNDS):
        h0 = multiply_high(PHILOX_M0, c0)
        l0 = PHILOX_M0 * c0
        h1 = multiply_high(PHILOX_M1, c2)
        l1 = PHILOX_M1 * c2
        c0 = h1 ^ c1 ^ k0
        c1 = l1
        c2 = h0 ^ c3 ^ k1
        c3 = l0
        k0 = k0 + PHILOX_W0
        k1 = k1 + PHILOX_W1
    out[0] = c0
    out[1] = c1
    out[2] = c2
    out[3] = c3


@njit_cached
def fill_uniforms(key, stream, first, out, numbers):  # type: ignore[no-untyped-def]
    """Fill `out` with the generator's float32 numbers in [0, 1), from index `first` on.

    `numbers` uint64 [4] is scratch memory.
    """
    block = -1
    for i in range(len(out)):
        index = first + i
        needed_block = index // 8
        if needed_block != block:
            block = needed_block
            write_philox_block(key, stream, U(needed_block), numbers)
        word = numbers[(index // 2) % 4]
        half = word >> SHIFT32 if index % 2 else word & LOW32
        out[i] = np.float32(half >> U(8)) * TO_UNIT


@njit_cached
def seed_pcg64(seed, state):  # type: ignore[no-untyped-def]
    """Write PCG64's state uint64 [4] (state high, low, increment high, low) for `SeedSequence(seed)`."""
    pool = np.empty(POOL, np.uint64)
    constant = INIT_A
    for i in range(POOL):
        word = (seed & LOW32) if i == 0 else (seed >> SHIFT32) if i == 1 else U(0)
        pool[i], constant = mix_entropy(word, constant)
    for source in range(POOL):
        for target in range(POOL):
            if source != target:
                word, constant = mix_entropy(pool[source], constant)
                value = (MIX_L * pool[target] - MIX_R * word) & LOW32
                pool[target] = value ^ (value >> SHIFT16)
    constant = INIT_B
    for i in range(2 * POOL):
        word = pool[i % POOL] ^ constant
        constant = (constant * MULT_B) & LOW32
        word = (word * constant) & LOW32
        word ^= word >> SHIFT16
        if i % 2 == 0:
            state[i // 2] = word
        else:
            state[i // 2] |= word << SHIFT32
    high = state[0]
    low = state[1]
    state[2] = (state[2] << ONE) | (state[3] >> U(63))
    state[3] = (state[3] << ONE) | ONE
    state[0] = U(0)
    state[1] = U(0)
    step_pcg64(state)
    state[1] += low
    state[0] += high + (ONE if state[1] < low else U(0))
    step_pcg64(state)


@njit_cached
def mix_entropy(word, constant):  # type: ignore[no-untyped-def]
    """Return the hash of a word and the next constant, both of 32 bits."""
    word ^= constant
    constant = (constant * MULT_A) & LOW32
    word = (word * constant) & LOW32
    return word ^ (word >> SHIFT16), constant


@njit_cached
def step_pcg64(state):  # type: ignore[no-untyped-def]
    """Advance PCG64's 128-bit state: s ← s · a + c."""
    high = state[0]
    low = state[1]
    product = low * PCG_LOW
    upper = multiply_high(low, PCG_LOW) + high * PCG_LOW + low * PCG_HIGH
    total = product + state[3]
    state[0] = upper + state[2] + (ONE if total < product else U(0))
    state[1] = total


@njit_cached
def sample_uniform(state, low, high):  # type: ignore[no-untyped-def]
    """Return the next number of `Generator(PCG64(seed)).uniform(low, high)`."""
    step_pcg64(state)
    word = state[0] ^ state[1]
    rotation = state[0] >> U(58)
    word = (word >> rotation) | (word << ((U(64) - rotation) & U(63)))
    return low + (high - low) * (np.float64(word >> U(11)) * 2.0**-53)
