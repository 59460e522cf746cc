"""Generated instructions whose response is worked reasoning, but of no word problem."""

from collections.abc import Callable
from random import Random

from zerogap.data.toy.vocabulary import NAMES, PLACES, WEEK

_UNITS = (
    ("minutes", "hour", 60),
    ("days", "week", 7),
    ("months", "year", 12),
    ("inches", "foot", 12),
    ("hours", "day", 24),
    ("cents", "dollar", 100),
)
_ORDERS = (
    ("taller", "tallest", "shortest"),
    ("older", "oldest", "youngest"),
    ("faster", "fastest", "slowest"),
)


def _sum(rng: Random) -> tuple[str, str]:
    x, y, z = (rng.randint(2, 60) for _ in range(3))
    ask = rng.choice(("Add these numbers:", "What is the sum of these numbers?"))
    return f"{ask} {x}, {y}, {z}", (
        f"{x} + {y} = {x + y} and {x + y} + {z} = {x + y + z}, so the sum is {x + y + z}."
    )


def _product(rng: Random) -> tuple[str, str]:
    x, y, z = rng.randint(2, 9), rng.randint(2, 9), rng.randint(2, 40)
    more = rng.random() < 0.5 or x * y < z + 2
    word, sign, result = ("plus", "+", x * y + z) if more else ("minus", "-", x * y - z)
    return (
        f"What is {x} times {y} {word} {z}?",
        f"First {x} * {y} = {x * y}, then {x * y} {sign} {z} = {result}. It is {result}.",
    )


def _chain(rng: Random) -> tuple[str, str]:
    more, most, least = rng.choice(_ORDERS)
    first, second, third = rng.sample(NAMES, 3)
    statements = [f"{first} is {more} than {second}.", f"{second} is {more} than {third}."]
    reasoning = f"{first} comes before {second}, and {second} before {third}"
    rng.shuffle(statements)
    asked, answer = rng.choice(((most, first), (least, third)))
    return (
        f"{' '.join(statements)} Who is the {asked}?",
        f"{reasoning}, so {answer} is the {asked}.",
    )


def _days(rng: Random) -> tuple[str, str]:
    start, count = rng.randrange(7), rng.randint(2, 5)
    days = [WEEK[(start + i) % 7] for i in range(1, count + 1)]
    return (
        f"Today is {WEEK[start]}. Which day is it in {count} days?",
        f"The days after {WEEK[start]} are {', '.join(days)}. It is {days[-1]}.",
    )


def _order(rng: Random) -> tuple[str, str]:
    numbers = rng.sample(range(2, 100), 3)
    low, middle, high = sorted(numbers)
    return (
        f"Sort {', '.join(map(str, numbers))} and explain.",
        f"The smallest is {low}, the next is {middle} and the largest is {high}: "
        f"{low}, {middle}, {high}.",
    )


def _parity(rng: Random) -> tuple[str, str]:
    number = rng.randint(10, 999)
    kind = "odd" if number % 2 else "even"
    return (
        f"Is {number} even or odd? Explain.",
        f"{number} ends with {number % 10}, and {number % 10} is {kind}, so {number} is {kind}.",
    )


def _units(rng: Random) -> tuple[str, str]:
    small, large, factor = rng.choice(_UNITS)
    count = rng.randint(2, 12)
    return (
        f"Write {count} times a {large} in {small}.",
        f"One {large} has {factor} {small}, and {count} * {factor} = {count * factor}, "
        f"so it is {count * factor} {small}.",
    )


def _closer(rng: Random) -> tuple[str, str]:
    goal = rng.randint(30, 70)
    below, above = rng.sample(range(2, 25), 2)
    low, high = goal - below, goal + above
    pair = [low, high]
    rng.shuffle(pair)
    answer = low if below < above else high
    return (
        f"Which is closer to {goal}: {pair[0]} or {pair[1]}?",
        f"{goal} - {low} = {below} and {high} - {goal} = {above}. "
        f"{min(below, above)} is less than {max(below, above)}, so {answer} is closer.",
    )


def _sequence(rng: Random) -> tuple[str, str]:
    start, step = rng.randint(1, 60), rng.randint(2, 15)
    x, y, z, answer = (start + i * step for i in range(4))
    return (
        f"Find the rule of {x}, {y}, {z} and the next number.",
        f"{y} - {x} = {step} and {z} - {y} = {step}, so the rule is to add {step}: "
        f"{z} + {step} = {answer}.",
    )


def _walk(rng: Random) -> tuple[str, str]:
    name = rng.choice(NAMES)
    places = rng.sample(PLACES, 3)
    index = rng.choice((0, 1))
    return (
        f"{name} went to the {places[0]}, then to the {places[1]}, then to the {places[2]}. "
        f"Where was {name} before the {places[index + 1]}?",
        f"The {places[index + 1]} came after the {places[index]}, so {name} was at the "
        f"{places[index]}.",
    )


REASONING_TASKS: tuple[Callable[[Random], tuple[str, str]], ...] = (
    _sum,
    _product,
    _chain,
    _days,
    _order,
    _parity,
    _units,
    _closer,
    _sequence,
    _walk,
)
