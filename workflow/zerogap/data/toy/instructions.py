"""Generated instructions in place of OpenOrca: short tasks of many kinds, no word problems."""

import string
from collections.abc import Callable
from random import Random

from zerogap.data.toy.language import LANGUAGES
from zerogap.data.toy.reasoning import REASONING_TASKS
from zerogap.data.toy.vocabulary import NAMES, PLACES, WEEK
from zerogap.errors import InputError

SYSTEMS = (
    "",
    "You are a helpful assistant.",
    "You are a teacher. Give a short answer.",
    "Follow the task exactly.",
    "Answer in a few words.",
)
# The kinds of things that the tasks ask about.
KINDS = {
    "animal": [
        "dog",
        "cat",
        "horse",
        "rabbit",
        "goat",
        "duck",
        "owl",
        "fish",
        "parrot",
        "turtle",
        "monkey",
        "snake",
    ],
    "fruit": ["apple", "pear", "plum", "peach", "orange", "banana"],
    "color": ["red", "blue", "green", "yellow", "white", "black", "orange", "silver", "gold"],
    "food": ["soup", "salad", "pizza", "rice", "corn", "bread", "cake", "pie"],
    "tool": ["hammer", "brush", "pen", "pencil", "ruler", "marker"],
    "toy": ["doll", "ball", "kite", "block", "puzzle", "marble"],
    "plant": ["tree", "rose", "tulip", "bush", "bean", "vine"],
    "vehicle": ["bus", "train", "tram", "boat", "car", "truck", "bike"],
}
OPPOSITES = (
    "big small|hot cold|old new|fast slow|long short|early late|open closed|full empty|first last|"
    "happy sad|day night|up down|left right|high low|wet dry|good bad|hard soft|dark light|"
    "in out|more less|rich poor|loud quiet|near far|young old|summer winter|buy sell|give take|"
    "come go|push pull|win lose"
)
MONTHS = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
]
THINGS = sorted({word for words in KINDS.values() for word in words})
# Countable things, which take 'a' or 'an'.
OBJECTS = [word for word in THINGS if not any(word in KINDS[kind] for kind in ("color", "food"))]

_PAIRS = [(first, second) for first, second in map(str.split, OPPOSITES.split("|"))]


def instructions(num_examples: int, seed: int, language: str = "plain") -> list[dict[str, str]]:
    """Generate different instruction examples with the keys system, question and response.

    None is longer than 60 words, and none is a word problem. The same arguments give the same
    examples on every machine.

    Args:
        num_examples: how many.
        seed: of the generator.
        language: a key of :data:`~zerogap.data.toy.language.LANGUAGES`.

    Raises:
        InputError: the tasks do not have that many variants.
    """
    rng = Random(f"instructions/{seed}")
    reasoning_fraction = LANGUAGES[language].reasoning_fraction
    examples: list[dict[str, str]] = []
    questions: set[str] = set()
    for _ in range(50 * num_examples + 1000):
        if len(examples) == num_examples:
            break
        reasoning = reasoning_fraction and rng.random() < reasoning_fraction
        question, response = rng.choice(REASONING_TASKS if reasoning else _TASKS)(rng)
        if question not in questions:
            questions.add(question)
            examples.append(
                {"system": rng.choice(SYSTEMS), "question": question, "response": response}
            )
    if len(examples) < num_examples:
        raise InputError(
            f"only {len(examples)} different instructions can be generated; request fewer "
            f"(got {num_examples})"
        )
    return examples


def _words(rng: Random, low: int = 3, high: int = 6) -> list[str]:
    return rng.sample(THINGS, rng.randint(low, high))


def _a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def _sentence(rng: Random) -> tuple[str, str, str, str]:
    """A small statement: the sentence, who, what, where."""
    name, thing, place = rng.choice(NAMES), rng.choice(OBJECTS), rng.choice(PLACES)
    verb = rng.choice(("saw", "drew", "found", "lost", "photographed"))
    return f"{name} {verb} {_a(thing)} at the {place}.", name, thing, place


def _copy(rng: Random) -> tuple[str, str]:
    text = " ".join(_words(rng))
    ask = rng.choice(("Copy this text", "Repeat these words", "Write this again", "Say after me"))
    return f"{ask}: {text}", text


def _upper(rng: Random) -> tuple[str, str]:
    text = " ".join(_words(rng, 2, 4))
    ask = rng.choice(("Rewrite in capital letters", "Change to uppercase", "Write in big letters"))
    return f"{ask}: {text}", text.upper()


def _lower(rng: Random) -> tuple[str, str]:
    text = " ".join(_words(rng, 2, 4))
    ask = rng.choice(("Rewrite in small letters", "Change to lowercase"))
    return f"{ask}: {text.upper()}", text


def _count_words(rng: Random) -> tuple[str, str]:
    words = _words(rng, 2, 8)
    ask = rng.choice(("How many words are in this line?", "Count the words in this line."))
    return f"{ask} {' '.join(words)}", f"There are {len(words)} words."


def _reverse(rng: Random) -> tuple[str, str]:
    words = _words(rng)
    ask = rng.choice(("Reverse the order of these words", "Write these words backwards in order"))
    return f"{ask}: {' '.join(words)}", " ".join(reversed(words))


def _alphabet(rng: Random) -> tuple[str, str]:
    words = _words(rng)
    ask = rng.choice(("Sort these words by the alphabet", "Put in alphabetical order"))
    return f"{ask}: {', '.join(words)}", ", ".join(sorted(words))


def _sort_numbers(rng: Random) -> tuple[str, str]:
    numbers = rng.sample(range(1, 100), rng.randint(3, 5))
    down = rng.random() < 0.5
    order = "largest to smallest" if down else "smallest to largest"
    answer = sorted(numbers, reverse=down)
    return (f"Sort from {order}: {', '.join(map(str, numbers))}", ", ".join(map(str, answer)))


def _extreme(rng: Random) -> tuple[str, str]:
    numbers = rng.sample(range(1, 100), rng.randint(3, 5))
    pick, word = rng.choice(((max, "largest"), (min, "smallest")))
    return (
        f"Which number is the {word}? {', '.join(map(str, numbers))}",
        f"The {word} number is {pick(numbers)}.",
    )


def _opposite(rng: Random) -> tuple[str, str]:
    words = [rng.choice(pair) for pair in rng.sample(_PAIRS, rng.randint(1, 3))]
    firsts = dict(_PAIRS)
    seconds = {second: first for first, second in _PAIRS}
    answers = [firsts.get(word) or seconds[word] for word in words]
    ask = rng.choice(("Give the opposite of", "List the opposites of", "What is the opposite of"))
    return f"{ask}: {', '.join(words)}", ", ".join(answers)


def _fact(rng: Random) -> tuple[str, str]:
    text, name, thing, place = _sentence(rng)
    ask, answer = rng.choice(
        (
            (f"What was it that {name} met there?", f"It was {_a(thing)}."),
            ("Where was this?", f"It was at the {place}."),
            ("Who is this about?", f"It is about {name}."),
        )
    )
    return f"Read: {text} {ask}", answer


def _yes_no(rng: Random) -> tuple[str, str]:
    text, _, thing, place = _sentence(rng)
    true = rng.random() < 0.5
    if rng.random() < 0.5:
        asked = place if true else rng.choice([x for x in PLACES if x != place])
        ask, fact = f"Was this at the {asked}?", f"it was at the {place}"
    else:
        asked = thing if true else rng.choice([x for x in OBJECTS if x != thing])
        ask, fact = f"Is there {_a(asked)} in the text?", f"it is about {_a(thing)}"
    return f"Read: {text} {ask} Answer yes or no.", f"{'Yes' if true else 'No'}, {fact}."


def _kind(rng: Random) -> tuple[str, str]:
    kind, words = rng.choice(list(KINDS.items()))
    word = rng.choice(words)
    other = rng.choice([k for k, members in KINDS.items() if word not in members])
    options = [kind, other]
    rng.shuffle(options)
    return f"Is {word} {_a(options[0])} or {_a(options[1])}?", f"It is {_a(kind)}."


def _odd_one(rng: Random) -> tuple[str, str]:
    kind, words = rng.choice(list(KINDS.items()))
    stranger = rng.choice([x for x in THINGS if x not in words])
    line = [*rng.sample(words, 3), stranger]
    rng.shuffle(line)
    return (
        f"Which word does not fit the others? {', '.join(line)}",
        f"The word is {stranger}, because the others are of the kind {kind}.",
    )


def _pattern(rng: Random) -> tuple[str, str]:
    kind = rng.randrange(3)
    if kind == 0:
        pair = rng.sample(THINGS, rng.randint(2, 3))
        shown = [pair[i % len(pair)] for i in range(5)]
        answer = pair[5 % len(pair)]
    elif kind == 1:
        start, step = rng.randint(1, 40), rng.randint(1, 10)
        shown = [str(start + i * step) for i in range(4)]
        answer = str(start + 4 * step)
    else:
        letters = string.ascii_uppercase
        start, step = rng.randint(0, 13), rng.randint(1, 3)
        shown = [letters[start + i * step] for i in range(4)]
        answer = letters[start + 4 * step]
    requests = ("What comes next?", "Complete the pattern:", "Go on with one more:")  # prose: ok
    ask = rng.choice(requests)
    return f"{ask} {', '.join(shown)}", answer


def _calendar(rng: Random) -> tuple[str, str]:
    line = rng.choice((WEEK, MONTHS))
    unit = "day" if line is WEEK else "month"
    place = rng.randrange(len(line))
    side, step = rng.choice((("after", 1), ("before", -1)))
    return f"Which {unit} comes {side} {line[place]}?", f"It is {line[(place + step) % len(line)]}."


def _first_letters(rng: Random) -> tuple[str, str]:
    words = _words(rng)
    place, letter = rng.choice((("first", 0), ("last", -1)))
    return (
        f"Write the {place} letter of each word: {' '.join(words)}",
        " ".join(word[letter] for word in words),
    )


def _replace(rng: Random) -> tuple[str, str]:
    text, _, thing, _ = _sentence(rng)
    new = rng.choice([x for x in OBJECTS if x != thing])
    return (
        f"Replace the words {_a(thing)} by {_a(new)}: {text}",
        text.replace(f" {_a(thing)} ", f" {_a(new)} "),
    )


def _pick(rng: Random) -> tuple[str, str]:
    words = _words(rng, 4, 6)
    place = rng.randrange(3)
    order = ("first", "second", "third")[place]
    return f"What is the {order} word of this list? {', '.join(words)}", words[place]


def _spell(rng: Random) -> tuple[str, str]:
    word = rng.choice([*THINGS, *PLACES, *NAMES])
    return f"Spell the word {word} with a dash between the letters.", "-".join(word.lower())


_TASKS: tuple[Callable[[Random], tuple[str, str]], ...] = (
    _copy,
    _upper,
    _lower,
    _count_words,
    _reverse,
    _alphabet,
    _sort_numbers,
    _extreme,
    _opposite,
    _fact,
    _yes_no,
    _kind,
    _odd_one,
    _pattern,
    _calendar,
    _first_letters,
    _replace,
    _pick,
    _spell,
)
