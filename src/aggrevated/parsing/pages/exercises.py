"""Generator of exercises in algebra with their solutions, line by line."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

VARIABLES = "xyabcnzdtmkpeuvwrs"
_WEIGHTS = np.array([8, 4, 4, 4, 3, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1]) / 45
SYMBOLS = (*"0123456789", *VARIABLES, *"+-×/=()")
SHORTEST = 3  # symbols on a page
LONGEST = 30  # symbols on a page


def sample_solution(generator: np.random.Generator) -> list[str]:
    """Return one to three consecutive lines of a solution, with 3 to 30 symbols in total."""
    while True:
        exercise = EXERCISES[generator.integers(len(EXERCISES))]
        lines = exercise(generator)
        count = min(int(generator.choice([1, 2, 3], p=[0.2, 0.3, 0.5])), len(lines))
        first = int(generator.integers(len(lines) - count + 1))
        chosen = [_swap_sides(line) if generator.random() < 0.1 else line for line in lines[first : first + count]]
        if SHORTEST <= sum(map(len, chosen)) <= LONGEST:
            return chosen


def _swap_sides(line: str) -> str:
    left, right = line.split("=")
    return f"{right}={left}"


def _sample_number(generator: np.random.Generator, low: int = 2, high: int = 9) -> int:
    """Return a whole number in low … high, multiplied by ten with probability 0.12."""
    return int(generator.integers(low, high + 1)) * (10 if generator.random() < 0.12 else 1)


def _sample_signed_number(generator: np.random.Generator, high: int = 9) -> int:
    return _sample_number(generator, 1, high) * (1 if generator.random() < 0.65 else -1)


def _sample_letters(generator: np.random.Generator, count: int) -> list[str]:
    return [str(v) for v in generator.choice(list(VARIABLES), count, replace=False, p=_WEIGHTS)]


def _format_term(k: int, variable: str) -> str:
    return {1: "", -1: "-"}.get(k, str(k)) + variable


def _format_summand(k: int) -> str:
    return f"{k:+d}" if k else ""


def sample_linear(generator: np.random.Generator) -> list[str]:
    """Return a linear equation with its solution, such as 3x+2=11 / 3x=9 / x=3."""
    (x,) = _sample_letters(generator, 1)
    k = _sample_signed_number(generator)
    b = _sample_signed_number(generator, 20)
    value = _sample_signed_number(generator, 12)
    steps = [f"{_format_term(k, x)}{_format_summand(b)}={k * value + b}"]
    if generator.random() < 0.4:
        steps.append(f"{_format_term(k, x)}={k * value + b}{_format_summand(-b)}")
    if k not in (1, -1) and generator.random() < 0.3:
        return [*steps, f"{_format_term(k, x)}={k * value}", f"{x}={k * value}/{k}" if k > 0 else f"{x}={value}"]
    return [*steps, *([f"{_format_term(k, x)}={k * value}"] if k != 1 else []), f"{x}={value}"]


def sample_two_sided(generator: np.random.Generator) -> list[str]:
    """Return an equation with the variable on both sides, such as 5x+2=3x+8 / 2x=6 / x=3."""
    (x,) = _sample_letters(generator, 1)
    m = _sample_number(generator, 1)
    b = _sample_signed_number(generator)
    gap = _sample_number(generator)
    value = _sample_signed_number(generator)
    k = m + gap
    steps = [f"{_format_term(k, x)}{_format_summand(b)}={_format_term(m, x)}{_format_summand(gap * value + b)}"]
    if generator.random() < 0.4:
        steps.append(f"{_format_term(k, x)}-{_format_term(m, x)}={gap * value + b}{_format_summand(-b)}")
    return [*steps, f"{_format_term(gap, x)}={gap * value}", f"{x}={value}"]


def sample_collecting(generator: np.random.Generator) -> list[str]:
    """Return an equation with terms to collect, such as 2x+3x-4=6 / 5x=10 / x=2."""
    (x,) = _sample_letters(generator, 1)
    k = _sample_number(generator)
    m = _sample_number(generator, 1)
    b = _sample_signed_number(generator)
    value = _sample_signed_number(generator)
    total = (k + m) * value
    return [
        f"{_format_term(k, x)}+{_format_term(m, x)}{_format_summand(b)}={total + b}",
        f"{_format_term(k + m, x)}{_format_summand(b)}={total + b}",
        f"{_format_term(k + m, x)}={total}",
        f"{x}={value}",
    ]


def sample_bracket(generator: np.random.Generator) -> list[str]:
    """Return an equation with brackets, such as 4(x-2)=12 / 4x-8=12 / 4x=20 / x=5."""
    (x,) = _sample_letters(generator, 1)
    b = _sample_signed_number(generator)
    value = _sample_signed_number(generator)
    k = -1 if generator.random() < 0.15 else _sample_number(generator)
    inside = f"({x}{_format_summand(b)})" if generator.random() < 0.7 else f"({b}+{x})"
    times = "×" if k > 1 and generator.random() < 0.15 else ""
    product = k * (value + b)
    first = f"{_format_term(k, times)}{inside}={product}"
    if generator.random() < 0.5:
        return [
            first,
            f"{_format_term(k, x)}{_format_summand(k * b)}={product}",
            f"{_format_term(k, x)}={k * value}",
            f"{x}={value}",
        ]
    return [first, f"{x}{_format_summand(b)}={value + b}", f"{x}={value + b}{_format_summand(-b)}", f"{x}={value}"]


def sample_quotient(generator: np.random.Generator) -> list[str]:
    """Return an equation with a quotient, such as x/3+2=5 / x/3=3 / x=3×3 / x=9."""
    (x,) = _sample_letters(generator, 1)
    k = _sample_number(generator)
    b = _sample_signed_number(generator)
    value = _sample_number(generator, 1)
    if generator.random() < 0.5:
        return [f"{x}/{k}{_format_summand(b)}={value + b}", f"{x}/{k}={value}", f"{x}={value}×{k}", f"{x}={value * k}"]
    product = f"{x}{_format_summand(b)}={k * value}"
    return [
        f"({x}{_format_summand(b)})/{k}={value}",
        product,
        f"{x}={k * value}{_format_summand(-b)}",
        f"{x}={k * value - b}",
    ]


def sample_product(generator: np.random.Generator) -> list[str]:
    """Return an equation with a product, such as 4×x=20 / x=20/4 / x=5."""
    (x,) = _sample_letters(generator, 1)
    k = _sample_number(generator)
    value = _sample_number(generator, 2, 12)
    first = f"{k}×{x}={k * value}" if generator.random() < 0.6 else f"{x}×{k}={k * value}"
    return [first, f"{x}={k * value}/{k}", f"{x}={value}"]


def sample_arithmetic(generator: np.random.Generator) -> list[str]:
    """Return a calculation with numbers, such as a=(3+4)×2 / a=7×2 / a=14."""
    (a,) = _sample_letters(generator, 1)
    p = _sample_number(generator)
    q = _sample_number(generator)
    r = _sample_number(generator)
    total = p + q  # value in brackets
    shapes = [
        [f"{a}=({p}+{q})×{r}", f"{a}={total}×{r}", f"{a}={total * r}"],
        [f"{a}={r}({p}+{q})", f"{a}={r}×{total}", f"{a}={total * r}"],
        [f"{a}={p}×{q}+{r}", f"{a}={p * q}+{r}", f"{a}={p * q + r}"],
        [f"{a}={p}-{q}×{r}", f"{a}={p}-{q * r}", f"{a}={p - q * r}"],
        [f"{a}={p * q}/{q}-{r}", f"{a}={p}-{r}", f"{a}={p - r}"],
        [f"{a}={r}-({p}-{q})", f"{a}={r}{_format_summand(q - p)}", f"{a}={r - p + q}"],
        [f"{a}={p}×{q}×{r}", f"{a}={p * q}×{r}", f"{a}={p * q * r}"],
        [f"{r}({p}+{q})={a}+{r}", f"{total * r}={a}+{r}", f"{a}={total * r - r}"],
    ]
    return shapes[generator.integers(len(shapes))]


def sample_substitution(generator: np.random.Generator) -> list[str]:
    """Return a substitution, such as y=2x+1 / x=3 / y=7 or x=3 / y=2x+1 / y=2×3+1 / y=7."""
    (x, y) = _sample_letters(generator, 2)
    k = _sample_number(generator)
    b = _sample_signed_number(generator)
    value = _sample_number(generator, 1)
    rule = (
        f"{y}={_format_term(k, x)}{_format_summand(b)}"
        if generator.random() < 0.6
        else f"{y}={k}({x}{_format_summand(b)})"
    )
    number = f"{y}={k * value + b}" if "(" not in rule else f"{y}={k * (value + b)}"
    worked = f"{y}={k}×{value}{_format_summand(b)}" if "(" not in rule else f"{y}={k}({value}{_format_summand(b)})"
    if generator.random() < 0.5:
        return [rule, f"{x}={value}", number]
    return [f"{x}={value}", rule, worked, number]


def sample_two_unknowns(generator: np.random.Generator) -> list[str]:
    """Return a system of two equations, such as x+y=5 / x-y=1 / 2x=6 / x=3 or x-y=1 / y=x-1 / y=3-1 / y=2."""
    (x, y) = _sample_letters(generator, 2)
    p = _sample_number(generator)
    q = _sample_number(generator)
    if generator.random() < 0.5:
        return [f"{x}+{y}={p + q}", f"{x}-{y}={p - q}", f"2{x}={2 * p}", f"{x}={p}"]
    return [f"{x}-{y}={p - q}", f"{y}={x}{_format_summand(q - p)}", f"{y}={p}{_format_summand(q - p)}", f"{y}={q}"]


def sample_given_value(generator: np.random.Generator) -> list[str]:
    """Return an equation with a given sum, as in the paper's example: 10(x+2)=a+b / a+b=50 / x=3."""
    (x, a, b) = _sample_letters(generator, 3)
    k = _sample_number(generator)
    p = _sample_signed_number(generator)
    value = _sample_number(generator, 1)
    total = k * (value + p)
    first = f"{k}({x}{_format_summand(p)})={a}+{b}"
    other = f"{a}+{b}={total}" if generator.random() < 0.6 else f"{total}={a}+{b}"
    return [first, other, f"{x}={value}"]


def sample_letters_only(generator: np.random.Generator) -> list[str]:
    """Return a transformation without numbers, such as ab+ac=d / a(b+c)=d / b+c=d/a."""
    a, b, c, d = _sample_letters(generator, 4)
    sign = "+" if generator.random() < 0.7 else "-"
    shapes = [
        [f"{a}{b}{sign}{a}{c}={d}", f"{a}({b}{sign}{c})={d}", f"{b}{sign}{c}={d}/{a}"],
        [f"{a}({b}{sign}{c})={d}", f"{a}{b}{sign}{a}{c}={d}", f"{a}{b}={d}{'-' if sign == '+' else '+'}{a}{c}"],
        [f"{a}+{b}={c}", f"{a}={c}-{b}"],
        [f"{a}/{b}={c}", f"{a}={b}{c}", f"{c}={a}/{b}"],
        [f"{a}×{b}={c}+{d}", f"{a}=({c}+{d})/{b}", f"{b}=({c}+{d})/{a}"],
        [f"({a}+{b})({c}{sign}{d})=0", f"{a}+{b}=0", f"{a}=-{b}"],
        [f"-{a}+{b}={c}", f"-{a}={c}-{b}", f"{a}={b}-{c}"],
        [f"{a}-({b}-{c})={d}", f"{a}-{b}+{c}={d}", f"{a}={b}-{c}+{d}"],
    ]
    return shapes[generator.integers(len(shapes))]


def sample_factored(generator: np.random.Generator) -> list[str]:
    """Return a factored equation, such as (x-3)(x+2)=0 / x-3=0 / x=3 or 2x(x-3)=0 / x-3=0 / x=3."""
    (x,) = _sample_letters(generator, 1)
    p = _sample_signed_number(generator)
    q = _sample_signed_number(generator)
    first = (
        f"({x}{_format_summand(-p)})({x}{_format_summand(-q)})"
        if generator.random() < 0.6
        else f"{abs(q) + 1}{x}({x}{_format_summand(-p)})"
    )
    return [f"{first}=0", f"{x}{_format_summand(-p)}=0", f"{x}={p}"]


EXERCISES: tuple[Callable[[np.random.Generator], list[str]], ...] = (
    sample_linear,
    sample_two_sided,
    sample_collecting,
    sample_bracket,
    sample_quotient,
    sample_product,
    sample_arithmetic,
    sample_substitution,
    sample_two_unknowns,
    sample_given_value,
    sample_letters_only,
    sample_factored,
)
