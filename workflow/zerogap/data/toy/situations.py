"""The language of the generated problems: what happens, how it is told, how it is reckoned.

A situation has *openers* (they bring the first quantity), *moves* (each changes it) and *asks* (the
closing question). A beat, opener or move, names its arithmetic (`op`, see
:mod:`zerogap.data.toy.word_problems`), how the question tells it and how the rationale shows it.

Marks in the texts: `[x|y]` is a choice; `{n}` the person's name, `{s}` name or he/she, `{o}` name
or him/her, `{p}` name's or his/her, `{m}` another person; `{a}`, `{b}`, `{c}`, `{d}` the beat's
numbers; `{eq}`, `{eq2}`, `{eq3}` its equations; `{state}` the state clause; `{then}` a time word;
`{times}` 'twice' or '3 times'; every other name is one of the situation's slots. A slot option
'box/boxes' fills `{x}` with the singular and `{xs}` with the plural. All numbers are at least 2,
so plurals always fit.
"""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Beat:
    """One event. A beat with `asks` closes with them; one with `last` must be the final one."""

    op: str
    tells: tuple[str, ...]
    why: str = ""
    shows: tuple[str, ...] = ()
    asks: tuple[str, ...] = ()
    last: bool = False


@dataclass(frozen=True)
class Situation:
    """`state` is the clause that says the present quantity, `unit` its noun."""

    name: str
    state: str
    unit: str
    openers: tuple[Beat, ...]
    moves: tuple[Beat, ...]
    asks: tuple[str, ...]
    slots: dict[str, tuple[str, ...]] = field(default_factory=dict)


def _words(line: str) -> list[str]:
    return line.split()


GIRLS = _words(
    "Ada Alice Amy Anna Bella Carla Chloe Clara Daisy Dora Ella Emma Erin Eva Fiona Grace Hana "
    "Iris Ivy Jane Julia Kate Lena Lily Lucy Maria Maya Mia Nina Nora Olga Priya Rosa Ruth Sara "
    "Sofia Tina Uma Vera Wendy Yara Zoe"
)
BOYS = _words(
    "Adam Alex Ali Ben Carlos Dan David Eli Eric Finn Frank George Hugo Ian Ivan Jack James Jim "
    "John Karl Kevin Leo Liam Luis Mark Max Nick Noah Omar Oscar Paul Peter Raj Ravi Rob Sam "
    "Sean Simon Tom Victor Will Zack"
)

THEN = (
    "then",
    "later,",
    "after that,",
    "the next day,",
    "in the afternoon,",
    "a week later,",
    "soon,",
    "next,",
    "that evening,",
)

DISTRACTORS = (
    "{n} is {d} years old.",
    "{n} has {d} cousins.",
    "{p} [house|street] has {d} trees.",
    "{p} [brother|sister] is {d} years old.",
    "{n} woke up at {d} o'clock.",
    "{p} [favorite|best] number is {d}.",
    "{n} wore a [red|blue|green|yellow] [hat|shirt|coat].",
    "It was a [sunny|rainy|cold|warm] day.",
    "{p} [dog|cat] slept all day.",
    "{n} likes [summer|winter|music|soccer].",
    "{n} was very happy about it.",
    "{p} [mother|father|aunt|uncle] came to visit.",
    "{n} lives near [a river|a park|the school|the sea].",
    "{p} [grandmother|grandfather|teacher] watched.",
)

SITUATIONS = (
    Situation(
        "collection",
        state="{s} has {eq} {things}",
        unit="{things}",
        slots={
            "thing": (
                "sticker/stickers",
                "card/cards",
                "marble/marbles",
                "shell/shells",
                "stamp/stamps",
                "button/buttons",
                "coin/coins",
                "pencil/pencils",
                "rock/rocks",
                "toy/toys",
            ),
            "holder": ("box/boxes", "bag/bags", "jar/jars", "book/books"),
        },
        openers=(
            Beat(
                "given",
                (
                    "{n} [had|owned|collected] {a} {things}.",
                    "There were {a} {things} in {p} {holder}.",
                    "{p} {holder} held {a} {things}.",
                ),
                shows=("{n} [starts with|begins with|first has] {a} {things}.",),
            ),
            Beat(
                "times",
                (
                    "{n} [had|filled|owned] {a} {holders} with {b} {things} in each {holder}.",
                    "{n} kept {p} {things} in {a} {holders}, and each {holder} held {b} {things}.",
                ),
                shows=(
                    "The {holders} hold {eq} {things}.",
                    "{a} {holders} with {b} {things} each hold {eq} {things}.",
                ),
                asks=(
                    "How many {things} did {n} have [in all|altogether|in total]?",
                    "How many {things} were in the {holders}?",
                ),
            ),
            Beat(
                "compare",
                (
                    "{m} had {a} {things}, and {n} had {times} as many.",
                    "{n} had {times} as many {things} as {m}, who had {a}.",
                ),
                shows=("{n} has {eq} {things}.", "Since {m} has {a}, {n} has {eq} {things}."),
                asks=("How many {things} did {n} have?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                (
                    "{then} {s} [bought|found|got|won] {b} more {things}.",
                    "{s} [bought|found|won] another {b} {things}.",
                    "{m} gave {o} {b} more {things}.",
                ),
                why="getting {b} more",
            ),
            Beat(
                "subtract",
                (
                    "{then} {s} [lost|sold|traded away] {b} of the {things}.",
                    "{s} gave {b} {things} to {m}.",
                    "{s} [dropped|lost] {b} {things} on the way home.",
                ),
                why="losing {b}",
            ),
            Beat(
                "half",
                ("{then} {s} gave half of the {things} to {m}.", "{s} sold half of them."),
                why="giving away half",
            ),
            Beat(
                "double",
                ("{then} {s} [doubled|managed to double] the number of {things}.",),
                why="doubling them",
            ),
            Beat(
                "add_groups",
                (
                    "{then} {s} bought {b} packs of {c} {things} each.",
                    "{m} brought {o} {b} packs with {c} {things} in each pack.",
                ),
                shows=(
                    "The packs hold {eq} {things}. {s} then has {eq2} {things}.",
                    "{b} packs hold {eq} {things}, so {s} has {eq2} {things}.",
                ),
            ),
            Beat(
                "divide",
                (
                    "{then} {s} shared all the {things} equally among {b} friends.",
                    "{s} put the {things} into {b} equal piles.",
                ),
                shows=("Each one has {eq} {things}.", "Sharing by {b} gives {eq} {things} each."),
                asks=(
                    "How many {things} were there for each one?",
                    "How many {things} made up each share?",
                ),
                last=True,
            ),
        ),
        asks=(
            "How many {things} does {n} have now?",
            "How many {things} does {s} have [in the end|left to keep]?",
            "What is the number of {things} {n} has now?",
        ),
    ),
    Situation(
        "baking",
        state="there are {eq} {things}",
        unit="{things}",
        slots={
            "thing": (
                "cookie/cookies",
                "muffin/muffins",
                "cupcake/cupcakes",
                "roll/rolls",
                "bun/buns",
                "tart/tarts",
            ),
            "tray": ("tray/trays", "plate/plates", "tin/tins"),
        },
        openers=(
            Beat(
                "given",
                (
                    "{n} baked {a} {things}.",
                    "In the morning {n} baked {a} {things}.",
                    "{n} took {a} {things} out of the oven.",
                ),
                shows=("{n} bakes {a} {things} at first.", "At first there are {a} {things}."),
            ),
            Beat(
                "times",
                (
                    "{n} baked {a} {trays} of {b} {things} each.",
                    "{n} filled {a} {trays} with {b} {things} on each one.",
                ),
                shows=("{n} bakes {eq} {things}.", "{a} {trays} of {b} make {eq} {things}."),
                asks=("How many {things} did {n} bake?", "How many {things} were there in all?"),
            ),
            Beat(
                "two_products",
                (
                    "{n} baked {a} {trays} of {b} {things} and {c} bigger {trays} of {d} {things}.",
                    "{n} made {a} {trays} with {b} {things} each and {c} more with {d} each.",
                ),
                shows=(
                    "The first {trays} hold {eq} {things}. The others hold {eq2}. "
                    "Together there are {eq3} {things}.",
                ),
                asks=("How many {things} did {n} bake in all?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                (
                    "{then} {s} baked {b} more.",
                    "{m} [brought|baked] {b} more {things} for the party.",
                ),
                why="adding {b} more",
            ),
            Beat(
                "subtract",
                (
                    "{then} {s} burned {b} of them.",
                    "{p} family ate {b} {things}.",
                    "{s} sold {b} {things} at the school fair.",
                ),
                why="taking away {b}",
            ),
            Beat(
                "half",
                ("{s} gave half of the {things} to {m}.", "{then} the guests ate half of them."),
                shows=("Half of them is {eq} {things}.", "That leaves {eq} {things}."),
            ),
            Beat(
                "subtract_groups",
                (
                    "{b} children ate {c} {things} each.",
                    "{then} {s} gave {c} {things} to each of {b} neighbors.",
                ),
                shows=(
                    "They take {eq} {things}. That leaves {eq2} {things}.",
                    "{b} times {c} is {eq} {things}, so {eq2} {things} are left.",
                ),
            ),
            Beat(
                "divide",
                (
                    "{s} packed the {things} into boxes of {b}.",
                    "{then} {s} put them into boxes that hold {b} {things} each.",
                ),
                shows=("{s} fills {eq} boxes.", "That makes {eq} boxes."),
                asks=("How many boxes did {s} fill?", "How many boxes were needed?"),
                last=True,
            ),
        ),
        asks=(
            "How many {things} are there now?",
            "How many {things} are left?",
            "How many {things} does {n} have now?",
        ),
    ),
    Situation(
        "eggs",
        state="{s} has {eq} eggs",
        unit="eggs",
        slots={"bird": ("hen/hens", "duck/ducks")},
        openers=(
            Beat(
                "times",
                (
                    "{n} keeps {a} {birds}, and each one lays {b} eggs a week.",
                    "On the farm of {n}, {a} {birds} lay {b} eggs each in a week.",
                ),
                shows=("The {birds} lay {eq} eggs a week.", "Each week {s} gets {eq} eggs."),
                asks=(
                    "How many eggs do the {birds} lay in a week?",
                    "How many eggs does {n} get each week?",
                ),
            ),
            Beat(
                "given",
                (
                    "{n} collected {a} eggs from the {birds}.",
                    "The {birds} of {n} laid {a} eggs this week.",
                ),
                shows=("{n} collects {a} eggs.", "There are {a} eggs at first."),
            ),
            Beat(
                "sum",
                (
                    "{n} found {a} eggs in the barn and {b} eggs under a tree.",
                    "The {birds} of {n} laid {a} eggs on Monday and {b} eggs on Tuesday.",
                ),
                shows=("{n} finds {eq} eggs.", "Adding both gives {eq} eggs."),
                asks=("How many eggs were there in all?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                (
                    "{s} [cooked|used] {b} eggs for breakfast.",
                    "{then} {s} broke {b} eggs by mistake.",
                    "{s} gave {b} eggs to {m}.",
                ),
                why="using {b} eggs",
            ),
            Beat(
                "add",
                ("{then} {s} found {b} more eggs in the grass.", "{m} brought {o} {b} more eggs."),
                why="adding {b} eggs",
            ),
            Beat(
                "half",
                ("{s} sold half of the eggs at the market.", "{then} {s} gave half to {m}."),
                why="parting with half",
            ),
            Beat(
                "multiply",
                ("{s} sold all the eggs at the market for ${b} each.",),
                shows=(
                    "{s} makes {eq} dollars.",
                    "At {b} dollars each the eggs bring {eq} dollars.",
                ),
                asks=("How many dollars did {s} make?", "How much money did {n} get for the eggs?"),
                last=True,
            ),
            Beat(
                "divide",
                (
                    "{s} put the eggs into cartons of {b}.",
                    "{then} {s} packed {b} eggs into each carton.",
                ),
                shows=("{s} fills {eq} cartons.", "The eggs fill {eq} cartons."),
                asks=("How many cartons did {n} fill?",),
                last=True,
            ),
        ),
        asks=("How many eggs does {n} have now?", "How many eggs are left for {o}?"),
    ),
    Situation(
        "library",
        state="the shelf has {eq} books",
        unit="books",
        slots={"kind": ("story", "science", "history", "picture", "comic")},
        openers=(
            Beat(
                "given",
                (
                    "A library shelf held {a} {kind} books when {n} came in.",
                    "{n} works at a library with {a} {kind} books on one shelf.",
                ),
                shows=("The shelf starts with {a} books.", "There are {a} books at first."),
            ),
            Beat(
                "times",
                (
                    "{n} filled {a} rows of a library shelf with {b} {kind} books in each row.",
                    "A library shelf that {n} keeps has {a} rows of {b} {kind} books.",
                ),
                shows=("The rows hold {eq} books.", "{a} rows of {b} make {eq} books."),
                asks=("How many books were on the shelf?", "How many books did the rows hold?"),
            ),
            Beat(
                "more",
                (
                    "{n} put {a} {kind} books on the shelf in the morning and {b} more than that "
                    "in the afternoon.",
                ),
                shows=(
                    "In the afternoon {s} shelves {eq} books. In all that is {eq2} books.",
                    "The second time it is {eq} books, and together {eq2} books.",
                ),
                asks=("How many books did {s} put on the shelf that day?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                (
                    "{then} readers borrowed {b} of the books.",
                    "{s} took {b} old books away.",
                    "A class borrowed {b} books from the shelf.",
                ),
                shows=("With {b} gone, {state}.", "That leaves {eq} books.", "Then {state}."),
            ),
            Beat(
                "add",
                (
                    "{then} {b} books were returned.",
                    "{s} added {b} new books to the shelf.",
                    "A school gave {b} more books to the shelf.",
                ),
                shows=("With {b} more, {state}.", "That makes {eq} books.", "Then {state}."),
            ),
            Beat(
                "half",
                ("{then} half of the books were moved to another room.",),
                shows=("Half of them is {eq} books.", "After the move {state}."),
            ),
            Beat(
                "subtract_groups",
                ("{b} students borrowed {c} books each.",),
                shows=(
                    "The students take {eq} books. The shelf keeps {eq2} books.",
                    "They borrow {eq} books, which leaves {eq2} books.",
                ),
            ),
            Beat(
                "divide",
                ("{s} set all the books of the shelf into {b} equal stacks.",),
                shows=("Each stack has {eq} books.",),
                asks=("How many books are in each stack?",),
                last=True,
            ),
        ),
        asks=(
            "How many books are on the shelf now?",
            "How many books does the shelf hold in the end?",
        ),
    ),
    Situation(
        "points",
        state="{s} has {eq} points",
        unit="points",
        slots={"game": ("basketball", "card", "ring toss", "video", "dart", "board")},
        openers=(
            Beat(
                "given",
                (
                    "{n} scored {a} points in the first round of a {game} game.",
                    "In a {game} game, {n} made {a} points early on.",
                ),
                shows=("{n} first scores {a} points.", "The first round gives {a} points."),
            ),
            Beat(
                "sum",
                (
                    "{n} scored {a} points in one {game} game and {b} points in the next.",
                    "In the first half of a {game} game {n} got {a} points, and in the second "
                    "half {b} points.",
                ),
                shows=("Both together give {eq} points.", "{n} scores {eq} points."),
                asks=("How many points did {n} score [in all|altogether]?",),
            ),
            Beat(
                "times",
                (
                    "{n} made {a} shots worth {b} points each in a {game} game.",
                    "In a {game} game {n} hit the goal {a} times for {b} points each time.",
                ),
                shows=("The shots are worth {eq} points.", "{n} gets {eq} points."),
                asks=("How many points did {n} score?",),
            ),
            Beat(
                "compare_total",
                (
                    "In a {game} game {n} scored {a} points, and {m} scored {times} as many.",
                    "{n} scored {a} points in a {game} game, while {m} got {times} as many points.",
                ),
                shows=(
                    "{m} scores {eq} points. The two have {eq2} points.",
                    "{m} gets {eq} points, so together they get {eq2} points.",
                ),
                asks=("How many points did the two score together?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                (
                    "{s} scored {b} more points in the next round.",
                    "{then} {s} got a bonus of {b} points.",
                ),
                why="the extra {b} points",
            ),
            Beat(
                "subtract",
                (
                    "{s} lost {b} points for [a mistake|a bad throw|a foul].",
                    "{then} {s} lost {b} points.",
                ),
                why="losing {b} points",
            ),
            Beat(
                "double",
                ("{then} a lucky card doubled all the points so far.",),
                why="the doubling",
            ),
            Beat(
                "add_groups",
                ("{s} also made {b} throws worth {c} points each.",),
                shows=(
                    "The throws bring {eq} points. In all {s} has {eq2} points.",
                    "That adds {eq} points and gives {eq2} points.",
                ),
            ),
            Beat(
                "from",
                ("{s} needs {b} points to win.", "The winner must reach {b} points."),
                shows=("{s} needs {eq} more points.", "To win {s} still needs {eq} points."),
                asks=("How many more points does {n} need?",),
                last=True,
            ),
        ),
        asks=("How many points does {n} have now?", "What is {n}'s score in the end?"),
    ),
    Situation(
        "bus",
        state="there are {eq} people on the {vehicle}",
        unit="people",
        slots={"vehicle": ("bus", "train", "tram", "boat")},
        openers=(
            Beat(
                "given",
                (
                    "{n} drives a {vehicle} with {a} people on it.",
                    "When {n} got on, there were {a} people on the {vehicle}.",
                    "There were {a} people on the {vehicle} that {n} took.",
                ),
                shows=("The {vehicle} starts with {a} people.", "At first {a} people ride."),
            ),
            Beat(
                "times",
                ("{n} drives a {vehicle} with {a} rows, and {b} people sit in each row.",),
                shows=("The rows seat {eq} people.", "{a} rows of {b} make {eq} people."),
                asks=("How many people are on the {vehicle}?",),
            ),
            Beat(
                "sum",
                ("On the {vehicle} that {n} drives, {a} children and {b} adults were riding.",),
                shows=("In all {eq} people ride.", "Children and adults make {eq} people."),
                asks=("How many people were on the {vehicle}?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                (
                    "At the [first|next|main] stop {b} people got off.",
                    "[Soon|Then|Later] {b} people left.",
                ),
                shows=("When {b} get off, {state}.", "That leaves {eq} people.", "Now {state}."),
            ),
            Beat(
                "add",
                (
                    "At the [next|old|second] station {b} people got on.",
                    "[Soon|Then|Later] {b} more people came in.",
                ),
                shows=("When {b} get on, {state}.", "That makes {eq} people.", "Now {state}."),
            ),
            Beat(
                "half",
                ("At the [park|bridge|school] half of the people got off.",),
                shows=("Half of them leave, so {state}.", "Half stay, which is {eq} people."),
            ),
            Beat(
                "add_groups",
                ("Near the museum {b} groups of {c} people got on.",),
                shows=(
                    "The groups are {eq} people. Then there are {eq2} people.",
                    "{eq} people get on, and that makes {eq2} people.",
                ),
            ),
            Beat(
                "multiply",
                ("Each of the people now on the {vehicle} paid ${b} for the ride.",),
                shows=("They pay {eq} dollars.", "The rides cost {eq} dollars."),
                asks=("How many dollars did these people pay?",),
                last=True,
            ),
        ),
        asks=(
            "How many people are on the {vehicle} now?",
            "How many people does the {vehicle} carry in the end?",
        ),
    ),
    Situation(
        "garden",
        state="the garden has {eq} {things}",
        unit="{things}",
        slots={
            "thing": (
                "rose/roses",
                "tulip/tulips",
                "bean plant/bean plants",
                "tomato plant/tomato plants",
                "bush/bushes",
                "herb/herbs",
            )
        },
        openers=(
            Beat(
                "times",
                (
                    "{n} planted {a} rows of {b} {things}.",
                    "In the garden {n} planted {a} rows with {b} {things} in each row.",
                ),
                shows=("The rows hold {eq} {things}.", "{n} plants {eq} {things}."),
                asks=("How many {things} did {n} plant?", "How many {things} are in the garden?"),
            ),
            Beat(
                "given",
                (
                    "{n} planted {a} {things} in the garden.",
                    "{a} {things} grew in the garden of {n}.",
                ),
                shows=("The garden starts with {a} {things}.", "{n} begins with {a} {things}."),
            ),
            Beat(
                "less",
                ("{n} planted {a} {things} in spring and {b} fewer in the fall.",),
                shows=(
                    "In the fall {s} plants {eq} {things}. The garden gets {eq2} {things}.",
                    "The fall brings {eq} {things}, so there are {eq2} {things}.",
                ),
                asks=("How many {things} did {n} plant in all?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                (
                    "A rabbit ate {b} of them.",
                    "{then} a storm broke {b} {things}.",
                    "{b} {things} dried up in the sun.",
                ),
                shows=("With {b} lost, {state}.", "That leaves {eq} {things}.", "Then {state}."),
            ),
            Beat(
                "add",
                ("{then} {s} planted {b} more.", "{m} planted {b} more {things} there."),
                why="planting {b} more",
            ),
            Beat(
                "half",
                ("Half of the {things} were moved to {p} school.",),
                why="moving half of them",
            ),
            Beat(
                "double", ("By the next year the number of {things} had doubled.",), why="doubling"
            ),
            Beat(
                "multiply",
                ("Each plant in the garden needs {b} cups of water.",),
                shows=("They need {eq} cups of water.", "In all that is {eq} cups of water."),
                asks=("How many cups of water does the garden need?",),
                last=True,
            ),
        ),
        asks=(
            "How many {things} are in the garden now?",
            "How many {things} does {n}'s garden have in the end?",
        ),
    ),
    Situation(
        "savings",
        state="{s} has {eq} dollars",
        unit="dollars",
        slots={"goal": ("bike", "game", "guitar", "camera", "tent", "skateboard")},
        openers=(
            Beat(
                "given",
                (
                    "{n} saved ${a} for a {goal}.",
                    "{n} had ${a} in a bank and wanted to buy a {goal}.",
                    "There was ${a} in {p} wallet.",
                ),
                shows=("{n} [starts|begins] with {a} dollars.",),
            ),
            Beat(
                "times",
                (
                    "{n} saved ${b} every week for {a} weeks to buy a {goal}.",
                    "For {a} months {n} put ${b} a month into a bank.",
                ),
                shows=("{n} saves {eq} dollars.", "Over that time {s} saves {eq} dollars."),
                asks=("How much money did {n} save?", "How many dollars did {n} save?"),
            ),
            Beat(
                "compare_total",
                ("{n} saved ${a} in May and {times} as much in June.",),
                shows=(
                    "In June {s} saves {eq} dollars. Together that is {eq2} dollars.",
                    "June brings {eq} dollars, so {s} has {eq2} dollars.",
                ),
                asks=("How many dollars did {n} save in the two months?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                (
                    "{p} [aunt|uncle|grandmother|father] gave {o} ${b} more.",
                    "{then} {s} earned ${b} by [washing a car|walking dogs|cutting grass].",
                ),
                why="getting {b} dollars",
            ),
            Beat(
                "subtract",
                (
                    "{s} spent ${b} on [lunch|a book|a ball|shoes].",
                    "{then} {s} paid ${b} for [a movie|a shirt|a gift].",
                ),
                why="spending {b} dollars",
            ),
            Beat(
                "half",
                ("{then} {s} spent half of the money on [a gift|a game|paint].",),
                why="spending half",
            ),
            Beat("double", ("{p} mother then doubled the money.",), why="the doubling"),
            Beat(
                "subtract_groups",
                ("{s} bought {b} [pens|drinks|toys|books] for ${c} each.",),
                shows=(
                    "They cost {eq} dollars. That leaves {eq2} dollars.",
                    "{s} pays {eq} dollars and keeps {eq2} dollars.",
                ),
            ),
            Beat(
                "from",
                ("The {goal} costs ${b}.",),
                shows=("{s} needs {eq} more dollars.", "For the {goal} {s} lacks {eq} dollars."),
                asks=("How many more dollars does {n} need for the {goal}?",),
                last=True,
            ),
        ),
        asks=(
            "How many dollars does {n} have now?",
            "How much money does {n} have [left|in the end]?",
        ),
    ),
    Situation(
        "ages",
        state="the age is {eq} years",
        unit="years",
        slots={"kin": ("uncle", "aunt", "mother", "father", "teacher")},
        openers=(
            Beat(
                "compare",
                (
                    "{m} is {a} years old, and {n} is {times} as old.",
                    "{n} is {times} as old as {m}, who is {a}.",
                ),
                shows=("{n} is {eq} years old.",),
                asks=("How old is {n}?",),
            ),
            Beat(
                "sum",
                (
                    "{m} is {a} years old, and {n} is {b} years older.",
                    "{n} is {b} years older than {m}, who is {a}.",
                ),
                shows=("{n} is {eq} years old.", "{p} age is {eq} years."),
                asks=("How old is {n}?",),
            ),
            Beat(
                "difference",
                ("{m} is {a} years old, and {n} is {b} years younger.",),
                shows=("{n} is {eq} years old.", "{p} age is {eq} years."),
                asks=("How old is {n}?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{p} {kin} is {b} years older than {n}.",),
                shows=("The {kin} is {eq} years old.", "{p} {kin} has an age of {eq} years."),
                asks=("How old is the {kin}?", "What is the age of {n}'s {kin}?"),
                last=True,
            ),
            Beat(
                "multiply",
                ("{p} {kin} is {b} times as old as {n}.",),
                shows=("The {kin} is {eq} years old.",),
                asks=("How old is the {kin}?",),
                last=True,
            ),
            Beat(
                "add",
                ("Now think of the time {b} years from now.",),
                shows=("In {b} years {n} will be {eq} years old.",),
                asks=("How old will {n} be then?",),
                last=True,
            ),
            Beat(
                "half",
                ("{p} dog is half as old as {n}.",),
                shows=("The dog is {eq} years old.",),
                asks=("How old is the dog?",),
                last=True,
            ),
        ),
        asks=("How old is {n}?",),
    ),
    Situation(
        "tickets",
        state="{s} takes in {eq} dollars",
        unit="dollars",
        slots={"show": ("play", "concert", "circus", "movie", "fair", "puppet show")},
        openers=(
            Beat(
                "times",
                (
                    "{n} sold {a} tickets for a {show} at ${b} each.",
                    "At a {show} {n} sold {a} tickets, and each ticket cost ${b}.",
                ),
                shows=("The tickets bring {eq} dollars.", "{n} takes in {eq} dollars."),
                asks=("How many dollars did {n} take in?", "How much money did the tickets bring?"),
            ),
            Beat(
                "two_products",
                (
                    "For a {show} {n} sold {a} adult tickets at ${b} each and {c} child tickets "
                    "at ${d} each.",
                ),
                shows=(
                    "The adult tickets bring {eq} dollars. The child tickets bring {eq2} dollars. "
                    "The sum is {eq3} dollars.",
                ),
                asks=("How much money did {n} take in?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                (
                    "{s} also took in ${b} for [drinks|popcorn|snacks].",
                    "A guest gave {o} ${b} as a gift for the {show}.",
                ),
                why="adding {b} dollars",
            ),
            Beat(
                "subtract",
                (
                    "{s} paid ${b} for [lights|paper|the room].",
                    "{then} {s} returned ${b} to a guest.",
                ),
                shows=("{s} keeps {eq} dollars.", "That leaves {eq} dollars."),
            ),
            Beat(
                "subtract_groups",
                ("{s} paid {b} helpers ${c} each.",),
                shows=(
                    "The helpers get {eq} dollars. {s} keeps {eq2} dollars.",
                    "Paying the helpers takes {eq} dollars, and {eq2} dollars stay.",
                ),
            ),
            Beat(
                "divide",
                ("The money was shared equally by {b} [groups|classes|clubs].",),
                shows=("Each one gets {eq} dollars.", "A share is {eq} dollars."),
                asks=("How many dollars did each one get?",),
                last=True,
            ),
        ),
        asks=(
            "How much money does {n} have now from the {show}?",
            "How many dollars does {s} have in the end?",
        ),
    ),
    Situation(
        "reading",
        state="{s} has read {eq} pages",
        unit="pages",
        slots={"kind": ("story", "mystery", "history", "poetry", "science")},
        openers=(
            Beat(
                "times",
                (
                    "{n} read {b} pages of a {kind} book every day for {a} days.",
                    "For {a} days {n} read {b} pages a day of a {kind} book.",
                ),
                shows=("{n} reads {eq} pages in that time.", "In {a} days that is {eq} pages."),
                asks=("How many pages did {n} read?",),
            ),
            Beat(
                "sum",
                ("{n} read {a} pages of a {kind} book on Monday and {b} pages on Tuesday.",),
                shows=("On both days {n} reads {eq} pages.", "The two days give {eq} pages."),
                asks=("How many pages did {n} read in all?",),
            ),
            Beat(
                "compare_total",
                ("{n} read {a} pages of a {kind} book on Saturday and {times} as many on Sunday.",),
                shows=(
                    "On Sunday {s} reads {eq} pages. In all {s} reads {eq2} pages.",
                    "Sunday gives {eq} pages, so the sum is {eq2} pages.",
                ),
                asks=("How many pages did {n} read on the weekend?",),
            ),
            Beat(
                "half_total",
                ("{n} read {a} pages of a {kind} book one day and half as many the next day.",),
                shows=(
                    "The next day {s} reads {eq} pages. Both days give {eq2} pages.",
                    "Half as many is {eq} pages, so in all it is {eq2} pages.",
                ),
                asks=("How many pages did {n} read in the two days?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{then} {s} read {b} more pages.", "{s} read another {b} pages before bed."),
                why="reading {b} more",
            ),
            Beat(
                "from",
                ("The book has {b} pages.", "There are {b} pages in the whole book."),
                shows=("There are {eq} pages left.", "{s} still has {eq} pages to read."),
                asks=("How many pages does {n} still have to read?", "How many pages are left?"),
                last=True,
            ),
            Beat(
                "add_groups",
                ("{s} also read {b} short stories of {c} pages each.",),
                shows=(
                    "The stories have {eq} pages. Now {s} has read {eq2} pages.",
                    "That adds {eq} pages and makes {eq2} pages.",
                ),
            ),
            Beat(
                "multiply",
                ("{s} needs {b} minutes for each page.",),
                shows=("{s} needs {eq} minutes.", "All the pages take {eq} minutes."),
                asks=("How many minutes did {n} spend reading?",),
                last=True,
            ),
        ),
        asks=("How many pages has {n} read so far?", "How many pages did {s} read in all?"),
    ),
    Situation(
        "beads",
        state="{s} has {eq} beads",
        unit="beads",
        slots={
            "color": ("red", "blue", "green", "gold", "white"),
            "jewel": ("necklace/necklaces", "bracelet/bracelets", "chain/chains"),
        },
        openers=(
            Beat(
                "sum",
                (
                    "{n} has {a} {color} beads and {b} black beads.",
                    "{n} bought {a} {color} beads and {b} silver beads.",
                ),
                shows=("{n} has {eq} beads in all.", "The two kinds make {eq} beads."),
                asks=("How many beads does {n} have in all?",),
            ),
            Beat(
                "times",
                (
                    "{n} wants to make {a} {jewels} with {b} {color} beads each.",
                    "{n} opened {a} packs of {b} {color} beads.",
                ),
                shows=("That takes {eq} beads.", "{a} times {b} beads is {eq} beads."),
                asks=("How many beads is that [in all|altogether]?",),
            ),
            Beat(
                "given",
                ("{n} has a jar of {a} {color} beads.", "In a drawer {n} keeps {a} {color} beads."),
                shows=("{n} has {a} beads at first.", "The beads number {a} at the start."),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("{s} used {b} beads for a gift.", "{then} {b} beads rolled away."),
                shows=("That leaves {eq} beads.", "Without {b} of them {state}."),
            ),
            Beat(
                "subtract_groups",
                ("{s} makes {b} {jewels} with {c} beads each.",),
                shows=(
                    "The {jewels} take {eq} beads. That leaves {eq2} beads.",
                    "{s} uses {eq} beads and keeps {eq2} beads.",
                ),
            ),
            Beat(
                "add",
                ("{m} gives {o} {b} more beads.", "{then} {s} buys {b} more beads."),
                why="getting {b} beads",
            ),
            Beat(
                "divide",
                (
                    "{s} uses all of them for {jewels} of {b} beads each.",
                    "Each {jewel} needs {b} beads, and {s} uses every bead.",
                ),
                shows=("{s} can make {eq} {jewels}.", "The beads are enough for {eq} {jewels}."),
                asks=("How many {jewels} can {n} make?",),
                last=True,
            ),
        ),
        asks=("How many beads does {n} have now?", "How many beads are left?"),
    ),
    Situation(
        "fish",
        state="there are {eq} fish in the tank",
        unit="fish",
        slots={"color": ("orange", "silver", "striped", "yellow")},
        openers=(
            Beat(
                "given",
                (
                    "{n} has a tank with {a} {color} fish.",
                    "There are {a} {color} fish in {p} tank.",
                ),
                shows=("The tank begins with {a} fish.", "At first there are {a} fish."),
            ),
            Beat(
                "sum",
                ("{n} keeps {a} {color} fish and {b} black fish in a tank.",),
                shows=("The tank holds {eq} fish.", "Both kinds make {eq} fish."),
                asks=("How many fish are in the tank?",),
            ),
            Beat(
                "compare_total",
                ("In a tank {n} keeps {a} {color} fish and {times} as many black fish.",),
                shows=(
                    "There are {eq} black fish. In all there are {eq2} fish.",
                    "The black fish number {eq}, so the tank has {eq2} fish.",
                ),
                asks=("How many fish does {n} keep in the tank?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{s} bought {b} more fish for the tank.", "{then} {b} baby fish were born."),
                why="adding {b} fish",
            ),
            Beat(
                "subtract",
                ("{s} gave {b} of the fish to {m}.", "{then} {s} moved {b} fish to a pond."),
                why="taking out {b} fish",
            ),
            Beat("double", ("{then} the number of fish doubled.",), why="doubling"),
            Beat(
                "divide",
                ("{s} put the fish into {b} tanks with the same number in each.",),
                shows=("Each tank gets {eq} fish.", "Split by {b}, that is {eq} fish each."),
                asks=("How many fish are in each tank now?",),
                last=True,
            ),
            Beat(
                "multiply",
                ("Each fish eats {b} flakes of food a day.",),
                shows=("They eat {eq} flakes a day.",),
                asks=("How many flakes do the fish eat in a day?",),
                last=True,
            ),
        ),
        asks=("How many fish are in the tank now?", "How many fish does {n} have there now?"),
    ),
    Situation(
        "walking",
        state="{s} has gone {eq} miles",
        unit="miles",
        slots={
            "goes": ("walked", "rode a bike", "hiked"),
            "spot": ("the lake", "the store", "the beach", "a farm"),
        },
        openers=(
            Beat(
                "times",
                (
                    "{n} {goes} {b} miles a day for {a} days.",
                    "For {a} days {n} {goes} {b} miles every day.",
                ),
                shows=("{n} goes {eq} miles in {a} days.", "That is {eq} miles."),
                asks=("How many miles did {n} go?", "How far did {n} go in miles?"),
            ),
            Beat(
                "sum",
                ("{n} {goes} {a} miles to {spot} and then {b} miles to {p} school.",),
                shows=("Both ways make {eq} miles.", "{n} goes {eq} miles."),
                asks=("How many miles did {n} go in all?",),
            ),
            Beat(
                "less",
                ("{n} {goes} {a} miles on Saturday and {b} miles less on Sunday.",),
                shows=(
                    "On Sunday {s} goes {eq} miles. The two days make {eq2} miles.",
                    "Sunday is {eq} miles, and together it is {eq2} miles.",
                ),
                asks=("How many miles did {n} go on both days?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{then} {s} went {b} miles more.", "{s} went another {b} miles to {spot}."),
                why="another {b} miles",
            ),
            Beat(
                "from",
                ("The whole trip is {b} miles long.", "{p} goal was {b} miles."),
                shows=("{s} still has {eq} miles to go.", "There are {eq} miles left."),
                asks=("How many miles are left?", "How many miles does {n} still have to go?"),
                last=True,
            ),
            Beat(
                "double",
                ("{then} {s} went the same way back.",),
                shows=("There and back it is {eq} miles.", "With the way back that is {eq} miles."),
            ),
            Beat(
                "divide",
                ("The trip took {b} hours at the same speed all the time.",),
                shows=("{s} goes {eq} miles in an hour.", "The speed is {eq} miles an hour."),
                asks=("How many miles did {n} go in each hour?",),
                last=True,
            ),
        ),
        asks=("How many miles did {n} go in all?", "How many miles long was the whole way?"),
    ),
    Situation(
        "time",
        state="{s} has spent {eq} minutes",
        unit="minutes",
        slots={
            "task": ("homework", "cleaning", "drawing", "chess", "painting"),
            "other": ("dishes", "laundry", "dog", "garden"),
        },
        openers=(
            Beat(
                "sum",
                ("{n} spent {a} minutes on {task} and {b} minutes on the {other}.",),
                shows=("{n} spends {eq} minutes.", "The two jobs take {eq} minutes."),
                asks=("How many minutes did {n} spend in all?",),
            ),
            Beat(
                "times",
                (
                    "{n} spent {b} minutes on {task} every day for {a} days.",
                    "{n} did {a} rounds of {task} that took {b} minutes each.",
                ),
                shows=("That takes {eq} minutes.", "{n} spends {eq} minutes on {task}."),
                asks=("How many minutes did {n} spend on {task}?",),
            ),
            Beat(
                "compare_total",
                ("{n} spent {a} minutes on {task} and {times} as long on the {other}.",),
                shows=(
                    "The {other} takes {eq} minutes. Both take {eq2} minutes.",
                    "It takes {eq} minutes for the {other}, and {eq2} minutes for both.",
                ),
                asks=("How many minutes did both take?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                (
                    "{then} {s} needed {b} minutes for [a bath|a snack|a phone call].",
                    "{s} also spent {b} minutes on [music|reading|a puzzle].",
                ),
                why="{b} more minutes",
            ),
            Beat(
                "from",
                ("{s} had {b} free minutes that day.", "Dinner came {b} minutes after the start."),
                shows=("That leaves {eq} minutes.", "{s} has {eq} minutes left."),
                asks=("How many minutes were left for {n}?",),
                last=True,
            ),
            Beat(
                "half",
                ("{m} needed only half as much time in all.",),
                shows=("{m} needs {eq} minutes.",),
                asks=("How many minutes did {m} need?",),
                last=True,
            ),
            Beat(
                "subtract",
                ("{m} was faster in all by {b} minutes.",),
                shows=("{m} needs {eq} minutes.", "The time of {m} is {eq} minutes."),
                asks=("How many minutes did {m} need?",),
                last=True,
            ),
        ),
        asks=("How many minutes did all this take {o}?", "How many minutes did {n} spend in all?"),
    ),
    Situation(
        "fence",
        state="{s} needs {eq} meters of fence",
        unit="meters",
        slots={"yard": ("garden", "field", "yard", "playground")},
        openers=(
            Beat(
                "perimeter",
                (
                    "{n} puts a fence around a {yard} that is {a} meters long and {b} meters wide.",
                    "A {yard} of {n} is {a} meters long and {b} meters wide, and it gets a fence.",
                ),
                shows=(
                    "One long side and one short side make {eq} meters. "
                    "All around it is {eq2} meters.",
                    "Length and width make {eq} meters, so the fence is {eq2} meters.",
                ),
                asks=(
                    "How many meters of fence does {n} need?",
                    "How long is the fence in meters?",
                ),
            ),
            Beat(
                "times",
                ("{n} builds a fence around a {yard} with {b} sides of {a} meters each.",),
                shows=("The sides make {eq} meters.", "The fence is {eq} meters long."),
                asks=("How many meters of fence does {n} need?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("{s} leaves {b} meters open for a gate.",),
                why="leaving {b} meters open",
            ),
            Beat(
                "add",
                ("{s} wants {b} meters more in case some wood breaks.",),
                why="adding {b} meters",
            ),
            Beat(
                "multiply",
                ("Each meter of the fence costs ${b}.",),
                shows=("The fence costs {eq} dollars.", "{s} pays {eq} dollars for it."),
                asks=("How many dollars does the fence cost?",),
                last=True,
            ),
            Beat(
                "divide",
                ("{s} buys the fence in parts of {b} meters.",),
                shows=("{s} needs {eq} parts.", "That takes {eq} parts."),
                asks=("How many parts does {n} need?",),
                last=True,
            ),
        ),
        asks=("How many meters of fence does {n} need in the end?", "How many meters is that?"),
    ),
    Situation(
        "packing",
        state="{s} has {eq} {things} to pack",
        unit="{things}",
        slots={
            "thing": (
                "cup/cups",
                "candle/candles",
                "lamp/lamps",
                "soap bar/soap bars",
                "doll/dolls",
            ),
            "holder": ("box/boxes", "crate/crates", "basket/baskets"),
        },
        openers=(
            Beat(
                "share",
                (
                    "{n} packs {a} {things} into {holders} of {b}.",
                    "{n} has {a} {things}, and each {holder} holds {b} of them.",
                ),
                shows=("{n} fills {eq} {holders}.", "The {things} fill {eq} {holders}."),
                asks=("How many {holders} does {n} fill?", "How many {holders} are needed?"),
                last=True,
            ),
            Beat(
                "given",
                ("{n} has {a} {things} to pack.", "A shop asks {n} to pack {a} {things}."),
                shows=("{n} starts with {a} {things}.",),
            ),
            Beat(
                "sum",
                ("{n} must pack {a} big {things} and {b} small {things}.",),
                shows=("{n} has {eq} {things}.", "Big and small make {eq} {things}."),
                asks=("How many {things} does {n} have to pack?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{then} {b} more {things} came in.", "{m} brought {o} {b} more {things}."),
                why="adding {b}",
            ),
            Beat(
                "subtract",
                ("{b} of the {things} broke.", "{then} {s} sold {b} {things}."),
                why="losing {b}",
            ),
            Beat(
                "subtract_groups",
                ("{s} filled {b} big {holders} with {c} {things} each.",),
                shows=(
                    "The {holders} take {eq} {things}. That leaves {eq2} {things}.",
                    "{s} packs {eq} {things} and still has {eq2} {things}.",
                ),
            ),
            Beat(
                "divide",
                ("Each {holder} holds {b} {things}.", "{s} put {b} {things} into each {holder}."),
                shows=("{s} fills {eq} {holders}.", "The {things} fill {eq} {holders}."),
                asks=("How many {holders} does {n} need?", "How many {holders} are needed?"),
                last=True,
            ),
        ),
        asks=(
            "How many {things} does {n} have to pack now?",
            "How many {things} are left to pack?",
        ),
    ),
    Situation(
        "wages",
        state="{s} has {eq} dollars",
        unit="dollars",
        slots={"job": ("cook", "painter", "driver", "farm worker", "baker", "guard")},
        openers=(
            Beat(
                "times",
                (
                    "{n} works as a {job} and earns ${b} an hour. This week {s} worked {a} hours.",
                    "As a {job} {n} worked {a} hours for ${b} an hour.",
                ),
                shows=("{n} earns {eq} dollars.", "The work pays {eq} dollars."),
                asks=("How many dollars did {n} earn?", "How much did {n} earn in dollars?"),
            ),
            Beat(
                "two_products",
                (
                    "As a {job} {n} worked {a} hours on Monday for ${b} an hour and {c} hours on "
                    "Sunday for ${d} an hour.",
                ),
                shows=(
                    "On Monday {s} earns {eq} dollars. On Sunday {s} earns {eq2} dollars. "
                    "That is {eq3} dollars.",
                ),
                asks=("How many dollars did {n} earn on the two days?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{s} also got ${b} in tips.", "{then} {s} got an extra ${b} for hard work."),
                why="getting {b} extra dollars",
            ),
            Beat(
                "subtract",
                ("{s} paid ${b} for [the bus|gloves|food|tools].",),
                shows=("{s} keeps {eq} dollars.", "After that cost {s} has {eq} dollars."),
            ),
            Beat(
                "half",
                ("{s} put half of the pay into the bank and kept the rest.",),
                shows=("{s} keeps {eq} dollars.", "Half of the pay is {eq} dollars."),
                asks=("How many dollars did {n} keep?",),
                last=True,
            ),
            Beat(
                "divide",
                ("{s} wants to spend the pay on gifts of ${b} each.",),
                shows=("{s} can buy {eq} gifts.", "That is enough for {eq} gifts."),
                asks=("How many gifts can {n} buy?",),
                last=True,
            ),
        ),
        asks=("How many dollars does {n} have from the work now?", "How much money is that?"),
    ),
    Situation(
        "shopping",
        state="{s} has to pay {eq} dollars",
        unit="dollars",
        slots={
            "item": ("notebook/notebooks", "shirt/shirts", "cap/caps", "mug/mugs", "towel/towels"),
            "extra": ("a backpack", "a ruler", "a belt", "an umbrella", "a scarf"),
        },
        openers=(
            Beat(
                "times",
                (
                    "{n} bought {a} {items} for ${b} each.",
                    "A {item} costs ${b}, and {n} bought {a} of them.",
                    "At the store {n} took {a} {items} that cost ${b} each.",
                ),
                shows=("The {items} cost {eq} dollars.", "{n} pays {eq} dollars for the {items}."),
                asks=("How many dollars did the {items} cost?", "How much did {n} pay in dollars?"),
            ),
            Beat(
                "two_products",
                ("{n} bought {a} {items} for ${b} each and {c} pens for ${d} each.",),
                shows=(
                    "The {items} cost {eq} dollars. The pens cost {eq2} dollars. "
                    "Together that is {eq3} dollars.",
                    "{eq} dollars go to the {items} and {eq2} dollars to the pens. "
                    "In total {s} pays {eq3} dollars.",
                ),
                asks=("How much did {n} pay in all, in dollars?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{s} also bought {extra} for ${b}.", "{then} {s} added {extra} that cost ${b}."),
                why="adding {b} dollars",
            ),
            Beat(
                "subtract",
                ("{s} had a coupon for ${b} off.", "The store took ${b} off the price."),
                why="taking off {b} dollars",
            ),
            Beat(
                "from",
                ("{s} paid with ${b}.", "{s} gave the clerk ${b}."),
                shows=("{s} gets back {eq} dollars.", "The change is {eq} dollars."),
                asks=("How much change did {n} get?", "How many dollars did {s} get back?"),
                last=True,
            ),
            Beat(
                "half",
                ("It was sale day, so {s} paid only half of the price.",),
                shows=("Half of the price is {eq} dollars.", "On sale {s} pays {eq} dollars."),
                asks=("How many dollars did {n} pay?",),
                last=True,
            ),
            Beat(
                "divide",
                ("{n} and {p} friends were {b} people and split the cost equally.",),
                shows=("Each one pays {eq} dollars.", "A share is {eq} dollars."),
                asks=("How many dollars did each one pay?",),
                last=True,
            ),
        ),
        asks=("How many dollars did {n} have to pay?", "How much did all this cost in dollars?"),
    ),
    Situation(
        "dinner",
        state="the bill is {eq} dollars",
        unit="dollars",
        slots={
            "meal": ("pizza/pizzas", "soup/soups", "salad/salads", "burger/burgers", "taco/tacos"),
            "drink": ("juice/juices", "tea/teas", "milkshake/milkshakes"),
        },
        openers=(
            Beat(
                "times",
                (
                    "{n} ordered {a} {meals} at ${b} each.",
                    "For dinner {n} ordered {a} {meals} that cost ${b} each.",
                ),
                shows=("The {meals} cost {eq} dollars.", "That food costs {eq} dollars."),
                asks=("How many dollars did the food cost?",),
            ),
            Beat(
                "two_products",
                ("{n} ordered {a} {meals} at ${b} each and {c} {drinks} at ${d} each.",),
                shows=(
                    "The {meals} cost {eq} dollars. The {drinks} cost {eq2} dollars. "
                    "The bill is {eq3} dollars.",
                ),
                asks=("How many dollars was the bill?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{s} left a tip of ${b}.", "A cake for ${b} was added."),
                why="adding {b} dollars",
            ),
            Beat(
                "subtract",
                ("The cook took ${b} off because the food was late.",),
                why="taking off {b} dollars",
            ),
            Beat(
                "add_groups",
                ("{p} friends also had {b} ice creams at ${c} each.",),
                shows=(
                    "The ice creams cost {eq} dollars. The bill is {eq2} dollars.",
                    "Ice cream adds {eq} dollars and brings it to {eq2} dollars.",
                ),
            ),
            Beat(
                "divide",
                ("{b} friends shared the bill equally.",),
                shows=("Each friend pays {eq} dollars.", "One share is {eq} dollars."),
                asks=("How many dollars did each friend pay?",),
                last=True,
            ),
            Beat(
                "from",
                ("{s} paid with ${b} from {p} wallet.",),
                shows=("{s} gets {eq} dollars back.", "The change is {eq} dollars."),
                asks=("How many dollars did {n} get back?",),
                last=True,
            ),
        ),
        asks=("How many dollars was the bill in the end?", "How much did the dinner cost?"),
    ),
    Situation(
        "classroom",
        state="there are {eq} students",
        unit="students",
        slots={"room": ("classroom", "gym", "music room", "hall")},
        openers=(
            Beat(
                "times",
                (
                    "In the {room} {n} set up {a} tables, and {b} students sit at each table.",
                    "{n} teaches in a {room} with {a} rows of {b} students.",
                ),
                shows=(
                    "There are {eq} students in the {room}.",
                    "{a} times {b} gives {eq} students.",
                ),
                asks=("How many students are in the {room}?",),
            ),
            Beat(
                "sum",
                (
                    "{n} teaches {a} girls and {b} boys in the {room}.",
                    "There are {a} boys and {b} girls with {n} in the {room}.",
                ),
                shows=("The class has {eq} students.", "Girls and boys make {eq} students."),
                asks=("How many students are in the {room}?",),
            ),
            Beat(
                "more",
                ("In the {room} {n} counted {a} girls and {b} more boys than girls.",),
                shows=(
                    "There are {eq} boys. In all there are {eq2} students.",
                    "The boys are {eq}, so there are {eq2} students.",
                ),
                asks=("How many students did {n} count?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("{b} students [went home|were sick|left for lunch].",),
                shows=("Without {b} of them {state}.", "That leaves {eq} students."),
            ),
            Beat(
                "add",
                ("{then} {b} new students came in.", "{b} students from another class joined."),
                shows=("With {b} more {state}.", "That makes {eq} students."),
            ),
            Beat(
                "divide",
                ("{n} put all of them into {b} equal teams.",),
                shows=("Each team has {eq} students.", "Split by {b}, a team is {eq} students."),
                asks=("How many students are on each team?",),
                last=True,
            ),
            Beat(
                "multiply",
                ("Each of these students got {b} sheets of paper.",),
                shows=("They get {eq} sheets.", "{s} hands out {eq} sheets."),
                asks=("How many sheets of paper did {n} hand out?",),
                last=True,
            ),
        ),
        asks=(
            "How many students are in the {room} now?",
            "How many students are there in the end?",
        ),
    ),
    Situation(
        "parking",
        state="there are {eq} cars in the lot",
        unit="cars",
        slots={"lot": ("parking lot", "garage", "car park")},
        openers=(
            Beat(
                "given",
                (
                    "{n} counted {a} cars in a {lot}.",
                    "There were {a} cars in the {lot} that {n} watches.",
                ),
                shows=("The lot starts with {a} cars.", "{n} counts {a} cars."),
            ),
            Beat(
                "times",
                ("A {lot} that {n} watches has {a} rows of {b} cars.",),
                shows=("The rows hold {eq} cars.", "{a} rows of {b} make {eq} cars."),
                asks=("How many cars are in the {lot}?",),
            ),
            Beat(
                "difference",
                ("{n} counted {a} cars in a {lot}, and {b} of them drove away.",),
                shows=("There are {eq} cars left.", "After {b} drive away, {eq} cars stay."),
                asks=("How many cars are still in the {lot}?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("{then} {b} more cars came in.", "At noon {b} cars came to park."),
                shows=("With {b} more {state}.", "That makes {eq} cars.", "Now {state}."),
            ),
            Beat(
                "subtract",
                ("{then} {b} cars left.", "After work {b} of the cars drove home."),
                shows=("When {b} leave, {state}.", "That leaves {eq} cars.", "Now {state}."),
            ),
            Beat(
                "half",
                ("At night half of the cars left.",),
                shows=("Half of them is {eq} cars.", "Half stay, so {state}."),
            ),
            Beat(
                "multiply",
                ("Each car there has to pay ${b}.",),
                shows=("The cars pay {eq} dollars.", "That brings {eq} dollars."),
                asks=("How many dollars do the cars pay?",),
                last=True,
            ),
        ),
        asks=("How many cars are in the {lot} now?", "How many cars does {n} see there now?"),
    ),
    Situation(
        "zoo",
        state="there are {eq} {things}",
        unit="{things}",
        slots={
            "thing": (
                "monkey/monkeys",
                "parrot/parrots",
                "goat/goats",
                "turtle/turtles",
                "owl/owls",
            )
        },
        openers=(
            Beat(
                "given",
                ("At the zoo {n} cares for {a} {things}.", "{n} saw {a} {things} at the zoo."),
                shows=("The zoo first has {a} {things}.", "At first there are {a} {things}."),
            ),
            Beat(
                "times",
                ("The zoo where {n} works has {a} cages with {b} {things} in each cage.",),
                shows=(
                    "The cages hold {eq} {things}.",
                    "In all {a} cages there are {eq} {things}.",
                ),
                asks=("How many {things} does the zoo have?",),
            ),
            Beat(
                "less",
                ("At the zoo {n} saw {a} {things} and {b} fewer snakes.",),
                shows=(
                    "There are {eq} snakes. Together there are {eq2} animals.",
                    "The snakes number {eq}, so {n} saw {eq2} animals.",
                ),
                asks=("How many animals did {n} see?",),
                last=True,
            ),
        ),
        moves=(
            Beat(
                "add",
                ("In spring {b} baby {things} were born.", "Another zoo sent {b} more {things}."),
                shows=("With {b} more {state}.", "That makes {eq} {things}."),
            ),
            Beat(
                "subtract",
                ("{b} {things} were sent to another zoo.", "{then} {b} of them were set free."),
                shows=("When {b} are gone, {state}.", "That leaves {eq} {things}."),
            ),
            Beat(
                "multiply",
                ("{n} feeds each of the {things} {b} bananas a day.",),
                shows=("They eat {eq} bananas.", "{n} needs {eq} bananas."),
                asks=("How many bananas does {n} need each day?",),
                last=True,
            ),
            Beat(
                "divide",
                ("{n} splits the {things} into groups of {b}.",),
                shows=("There are {eq} groups.", "That makes {eq} groups."),
                asks=("How many groups are there?",),
                last=True,
            ),
        ),
        asks=("How many {things} does the zoo have now?", "How many {things} are there now?"),
    ),
    Situation(
        "art",
        state="{s} has {eq} {things}",
        unit="{things}",
        slots={
            "thing": ("crayon/crayons", "brush/brushes", "marker/markers", "paint jar/paint jars")
        },
        openers=(
            Beat(
                "times",
                (
                    "For art class {n} bought {a} sets of {b} {things}.",
                    "{n} has {a} art kits with {b} {things} in each kit.",
                ),
                shows=("{n} has {eq} {things}.", "The sets give {eq} {things}."),
                asks=("How many {things} does {n} have for art?",),
            ),
            Beat(
                "share",
                ("In art class {n} shares {a} {things} equally among {b} students.",),
                shows=("Each student gets {eq} {things}.",),
                asks=("How many {things} does each student get?",),
                last=True,
            ),
            Beat(
                "sum",
                ("In the art room {n} found {a} old {things} and {b} new {things}.",),
                shows=("Old and new make {eq} {things}.", "{n} finds {eq} {things}."),
                asks=("How many {things} did {n} find?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                (
                    "{b} of the {things} were [dry|broken|lost].",
                    "{then} {s} lent {b} {things} to {m}.",
                ),
                why="losing {b}",
            ),
            Beat(
                "add",
                ("{then} {s} bought {b} more {things}.", "{m} gave {o} {b} {things}."),
                why="getting {b} more",
            ),
            Beat(
                "half", ("{s} gave half of the {things} to another class.",), why="giving away half"
            ),
            Beat(
                "divide",
                ("{s} puts the {things} on {b} desks with the same number on each.",),
                shows=("Each desk gets {eq} {things}.", "One desk has {eq} {things}."),
                asks=("How many {things} are on each desk?",),
                last=True,
            ),
        ),
        asks=("How many {things} does {n} have for art now?",),
    ),
    Situation(
        "music",
        state="{s} has played for {eq} hours",
        unit="hours",
        slots={"tool": ("piano", "violin", "drums", "flute", "trumpet")},
        openers=(
            Beat(
                "times",
                (
                    "{n} plays the {tool} for {b} hours a week. {s} has done so for {a} weeks.",
                    "For {a} weeks {n} played the {tool} {b} hours a week.",
                ),
                shows=("{n} plays for {eq} hours.", "In {a} weeks that is {eq} hours."),
                asks=("How many hours did {n} play?",),
            ),
            Beat(
                "compare_total",
                ("{n} played the {tool} for {a} hours in June and {times} as long in July.",),
                shows=(
                    "In July {s} plays {eq} hours. Both months make {eq2} hours.",
                    "July has {eq} hours, which makes {eq2} hours in all.",
                ),
                asks=("How many hours did {n} play in both months?",),
            ),
        ),
        moves=(
            Beat("add", ("Before a concert {s} played {b} hours more.",), why="{b} hours more"),
            Beat(
                "subtract",
                ("The teacher says that {b} of these hours were too loud to count.",),
                shows=("{eq} hours count.", "That leaves {eq} hours that count."),
                asks=("How many hours count?",),
                last=True,
            ),
            Beat(
                "from",
                ("{p} goal is to play for {b} hours.",),
                shows=("{s} has {eq} hours to go.", "There are {eq} hours left."),
                asks=("How many more hours does {n} need to play?",),
                last=True,
            ),
            Beat(
                "multiply",
                ("A teacher takes ${b} for each hour.",),
                shows=("{s} pays {eq} dollars.", "The hours cost {eq} dollars."),
                asks=("How many dollars does {n} pay the teacher?",),
                last=True,
            ),
        ),
        asks=("How many hours has {n} played the {tool}?", "How many hours did {s} play in all?"),
    ),
    Situation(
        "orchard",
        state="{s} has {eq} {fruits}",
        unit="{fruits}",
        slots={
            "fruit": ("apple/apples", "pear/pears", "plum/plums", "peach/peaches", "orange/oranges")
        },
        openers=(
            Beat(
                "times",
                (
                    "{n} picked {b} {fruits} from each of {a} trees.",
                    "From {a} trees {n} picked {b} {fruits} each.",
                ),
                shows=("{n} picks {eq} {fruits}.", "The trees give {eq} {fruits}."),
                asks=("How many {fruits} did {n} pick?",),
            ),
            Beat(
                "given",
                ("{n} picked {a} {fruits} from a tree.", "In an orchard {n} picked {a} {fruits}."),
                shows=("{n} picks {a} {fruits} first.", "The tree gives {a} {fruits}."),
            ),
            Beat(
                "more",
                ("{n} picked {a} {fruits}, and {m} picked {b} more than {n}.",),
                shows=(
                    "{m} picks {eq} {fruits}. Together they pick {eq2} {fruits}.",
                    "{m} has {eq} {fruits}, and both have {eq2} {fruits}.",
                ),
                asks=("How many {fruits} did {n} and {m} pick together?",),
                last=True,
            ),
        ),
        moves=(
            Beat(
                "subtract",
                (
                    "{s} threw away {b} bad {fruits}.",
                    "{then} {s} gave {b} {fruits} to {m}.",
                    "{s} used {b} {fruits} for a pie.",
                ),
                why="taking out {b}",
            ),
            Beat(
                "add",
                ("{m} picked {b} {fruits} for {o}.", "{then} {s} picked {b} more."),
                why="adding {b}",
            ),
            Beat("half", ("{s} left half of them with {m}.",), why="leaving half"),
            Beat(
                "divide",
                ("{s} sold the {fruits} in bags of {b}.", "{b} {fruits} go into each bag."),
                shows=("There are {eq} bags.", "The {fruits} fill {eq} bags."),
                asks=("How many bags were there?", "How many bags did {n} fill?"),
                last=True,
            ),
        ),
        asks=("How many {fruits} does {n} have now?", "How many {fruits} are left?"),
    ),
    Situation(
        "party",
        state="there are {eq} {things}",
        unit="{things}",
        slots={
            "thing": ("balloon/balloons", "candy/candies", "flag/flags", "paper hat/paper hats")
        },
        openers=(
            Beat(
                "times",
                (
                    "For a party {n} bought {a} packs of {b} {things}.",
                    "{n} wants {b} {things} for each of {a} guests at the party.",
                ),
                shows=("That is {eq} {things}.", "For the party that makes {eq} {things}."),
                asks=("How many {things} is that?", "How many {things} are for the party?"),
            ),
            Beat(
                "sum",
                ("For a party {n} had {a} {things}, and {m} brought {b} {things}.",),
                shows=("Together they have {eq} {things}.", "Both bring {eq} {things}."),
                asks=("How many {things} did they have for the party?",),
            ),
            Beat(
                "half_total",
                ("{n} brought {a} {things} to a party, and {m} brought half as many.",),
                shows=(
                    "{m} brings {eq} {things}. In all there are {eq2} {things}.",
                    "Half as many is {eq} {things}, so the sum is {eq2} {things}.",
                ),
                asks=("How many {things} were there at the party?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("{b} of the {things} were [lost|torn|taken home] before the party.",),
                shows=("Without {b} of them {state}.", "That leaves {eq} {things}."),
            ),
            Beat(
                "add",
                ("{then} a guest brought {b} more {things}.",),
                shows=("With {b} more {state}.", "That makes {eq} {things}."),
            ),
            Beat(
                "divide",
                ("The {things} were shared equally by {b} children.",),
                shows=("Each child gets {eq} {things}.", "One child has {eq} {things}."),
                asks=("How many {things} did each child get?",),
                last=True,
            ),
            Beat(
                "subtract_groups",
                ("{b} guests took {c} {things} each.",),
                shows=(
                    "The guests take {eq} {things}. That leaves {eq2} {things}.",
                    "They take {eq} {things} and leave {eq2} {things}.",
                ),
            ),
        ),
        asks=("How many {things} are there now?", "How many {things} are left?"),
    ),
    Situation(
        "photos",
        state="{p} phone has {eq} photos",
        unit="photos",
        slots={"topic": ("trip", "wedding", "birthday", "game")},
        openers=(
            Beat(
                "given",
                ("{n} took {a} photos on a {topic}.", "{p} phone held {a} photos of a {topic}."),
                shows=("The phone starts with {a} photos.", "{n} first has {a} photos."),
            ),
            Beat(
                "times",
                ("{n} took {b} photos of the {topic} every hour for {a} hours.",),
                shows=("{n} takes {eq} photos.", "In {a} hours that is {eq} photos."),
                asks=("How many photos did {n} take?",),
            ),
            Beat(
                "less",
                ("{n} took {a} photos of a {topic}, and {m} took {b} fewer photos.",),
                shows=(
                    "{m} takes {eq} photos. Together that is {eq2} photos.",
                    "{m} has {eq} photos, so the two have {eq2} photos.",
                ),
                asks=("How many photos did the two take?",),
                last=True,
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("{s} deleted {b} dark photos.", "{then} {s} deleted {b} of the photos."),
                why="deleting {b} photos",
            ),
            Beat(
                "add",
                ("{then} {s} took {b} more photos.", "{m} sent {o} {b} photos."),
                why="adding {b} photos",
            ),
            Beat("half", ("{s} kept only half of the photos.",), why="keeping half"),
            Beat(
                "divide",
                ("{s} prints all of them, {b} on each page of an album.",),
                shows=("The album has {eq} pages.", "{s} fills {eq} pages."),
                asks=("How many pages does {n} fill?",),
                last=True,
            ),
            Beat(
                "subtract",
                ("{m} has {b} photos.",),
                shows=("{n} has {eq} more photos.", "The difference is {eq} photos."),
                asks=("How many more photos does {n} have than {m}?",),
                last=True,
            ),
        ),
        asks=("How many photos are on {n}'s phone now?", "How many photos does {n} have now?"),
    ),
    Situation(
        "water",
        state="the {tub} has {eq} liters",
        unit="liters",
        slots={"tub": ("barrel", "tank", "pool", "tub")},
        openers=(
            Beat(
                "times",
                (
                    "{n} poured {a} buckets of {b} liters into an empty {tub}.",
                    "An empty {tub} of {n} got {b} liters of rain a day for {a} days.",
                ),
                shows=("The {tub} gets {eq} liters.", "That is {eq} liters of water."),
                asks=("How many liters are in the {tub}?",),
            ),
            Beat(
                "given",
                ("{p} {tub} holds {a} liters of water.", "{n} has {a} liters of water in a {tub}."),
                shows=("The {tub} starts with {a} liters.", "At first it holds {a} liters."),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                (
                    "{s} used {b} liters to [wash a car|water the flowers|clean the floor].",
                    "{then} {b} liters leaked out.",
                ),
                why="losing {b} liters",
            ),
            Beat(
                "add",
                ("Rain added {b} liters.", "{then} {s} poured in {b} more liters."),
                why="adding {b} liters",
            ),
            Beat(
                "subtract_groups",
                ("{b} horses drank {c} liters each.",),
                shows=(
                    "The horses drink {eq} liters. The {tub} keeps {eq2} liters.",
                    "They drink {eq} liters and leave {eq2} liters.",
                ),
            ),
            Beat("double", ("A storm then doubled the water in it.",), why="the storm"),
            Beat(
                "divide",
                ("{s} pours all the water into {b} equal cans.",),
                shows=("Each can gets {eq} liters.",),
                asks=("How many liters are in each can?",),
                last=True,
            ),
        ),
        asks=("How many liters are in the {tub} now?", "How much water, in liters, is in it now?"),
    ),
    Situation(
        "blocks",
        state="the {tower} has {eq} blocks",
        unit="blocks",
        slots={"tower": ("tower", "castle", "wall", "bridge")},
        openers=(
            Beat(
                "times",
                (
                    "{n} built a {tower} of {a} layers with {b} blocks in each layer.",
                    "A {tower} that {n} built has {a} layers of {b} blocks.",
                ),
                shows=("The {tower} takes {eq} blocks.", "{a} layers of {b} use {eq} blocks."),
                asks=("How many blocks did {n} use?",),
            ),
            Beat(
                "sum",
                ("{n} built a {tower} from {a} red blocks and {b} white blocks.",),
                shows=("The {tower} takes {eq} blocks.", "Red and white make {eq} blocks."),
                asks=("How many blocks are in the {tower}?",),
            ),
            Beat(
                "more",
                ("{n} used {a} blocks for a {tower}, and {m} used {b} more for another one.",),
                shows=(
                    "{m} uses {eq} blocks. Both use {eq2} blocks.",
                    "The other one takes {eq} blocks, and both take {eq2} blocks.",
                ),
                asks=("How many blocks did they use in all?",),
                last=True,
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("{b} blocks fell off.", "{then} {p} brother pulled out {b} blocks."),
                shows=("With {b} gone, {state}.", "That leaves {eq} blocks."),
            ),
            Beat(
                "add",
                ("{s} put {b} more blocks on top.", "{m} added {b} blocks."),
                why="adding {b} blocks",
            ),
            Beat(
                "double", ("{then} {s} built it twice as big with twice the blocks.",), why="that"
            ),
            Beat(
                "half",
                ("{p} cat knocked down half of the blocks.",),
                shows=("Half of them is {eq} blocks.", "Half stay, so {state}."),
            ),
        ),
        asks=("How many blocks are in the {tower} now?", "How many blocks does it have now?"),
    ),
    Situation(
        "mail",
        state="{s} has {eq} {things} to bring",
        unit="{things}",
        slots={"thing": ("letter/letters", "parcel/parcels", "newspaper/newspapers")},
        openers=(
            Beat(
                "given",
                (
                    "{n} had {a} {things} to bring to people.",
                    "A mail van with {n} carried {a} {things}.",
                ),
                shows=("{n} starts with {a} {things}.",),
            ),
            Beat(
                "times",
                ("{n} must bring {b} {things} to each of {a} houses.",),
                shows=("The houses get {eq} {things}.", "{n} must bring {eq} {things}."),
                asks=("How many {things} does {n} bring?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("{s} left {b} {things} at a shop.", "In the morning {s} brought {b} of them."),
                why="leaving {b}",
            ),
            Beat("add", ("At the post office {s} took {b} more {things}.",), why="taking {b} more"),
            Beat(
                "subtract_groups",
                ("On the first street {s} left {c} {things} at each of {b} houses.",),
                shows=(
                    "These houses get {eq} {things}. That leaves {eq2} {things}.",
                    "{s} leaves {eq} {things} there and still has {eq2} {things}.",
                ),
            ),
            Beat(
                "half",
                ("{m} took over half of the work, which is half of the {things}.",),
                why="the help of {m}",
            ),
            Beat(
                "divide",
                ("{s} brings {b} {things} in an hour.",),
                shows=("{s} needs {eq} hours.", "The rest takes {eq} hours."),
                asks=("How many hours does {n} need for them?",),
                last=True,
            ),
        ),
        asks=("How many {things} does {n} still have?", "How many {things} are left to bring?"),
    ),
    Situation(
        "weight",
        state="the {load} weighs {eq} pounds",
        unit="pounds",
        slots={
            "load": ("cart", "basket", "truck", "sack"),
            "crop": ("potatoes", "carrots", "corn", "rice", "onions"),
        },
        openers=(
            Beat(
                "times",
                ("{n} loaded {a} bags of {crop} into a {load}, and each bag weighs {b} pounds.",),
                shows=("The bags weigh {eq} pounds.", "{a} bags make {eq} pounds."),
                asks=("How many pounds do the bags weigh?",),
            ),
            Beat(
                "sum",
                ("{n} put {a} pounds of {crop} and {b} pounds of beans into a {load}.",),
                shows=("Both weigh {eq} pounds.", "The {load} gets {eq} pounds."),
                asks=("How many pounds did {n} put in?",),
            ),
        ),
        moves=(
            Beat(
                "add",
                ("An empty {load} like this weighs {b} pounds itself.",),
                shows=("With the {load} it is {eq} pounds.", "Together that is {eq} pounds."),
                asks=("How many pounds do the {load} and the food weigh together?",),
                last=True,
            ),
            Beat(
                "subtract",
                ("{s} took {b} pounds out for {m}.", "{then} {s} sold {b} pounds of it."),
                shows=("That leaves {eq} pounds.", "Without {b} pounds it is {eq} pounds."),
                asks=("How many pounds were left?",),
            ),
            Beat(
                "half",
                ("{s} sold half of the food at a market.",),
                shows=("Half of it is {eq} pounds.", "That leaves {eq} pounds."),
                asks=("How many pounds were left?",),
            ),
            Beat(
                "multiply",
                ("At the market {s} got ${b} for each pound.",),
                shows=("{s} gets {eq} dollars.", "The food brings {eq} dollars."),
                asks=("How many dollars did {n} get?",),
                last=True,
            ),
        ),
        asks=("How many pounds is that?",),
    ),
    Situation(
        "ribbon",
        state="{s} has {eq} feet of {cloth}",
        unit="feet",
        slots={"cloth": ("ribbon", "rope", "cloth", "string", "wire")},
        openers=(
            Beat(
                "share",
                (
                    "{n} cut {a} feet of {cloth} into pieces of {b} feet each.",
                    "{n} has {a} feet of {cloth} and needs {b} feet for each gift.",
                ),
                shows=("That makes {eq} pieces.", "{n} gets {eq} pieces of {cloth}."),
                asks=("How many pieces does {n} get?",),
                last=True,
            ),
            Beat(
                "given",
                ("{n} bought {a} feet of {cloth}.", "{p} roll of {cloth} was {a} feet long."),
                shows=("{n} starts with {a} feet.", "The {cloth} is first {a} feet long."),
            ),
            Beat(
                "times",
                ("{n} tied {a} pieces of {cloth} together, and each was {b} feet long.",),
                shows=("The pieces make {eq} feet.", "{a} pieces of {b} feet make {eq} feet."),
                asks=("How many feet long is the {cloth}?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("{s} cut off {b} feet for [a kite|a gift|a flag].", "{then} {s} used {b} feet."),
                why="using {b} feet",
            ),
            Beat(
                "add",
                ("{m} gave {o} {b} feet more.", "{then} {s} bought {b} more feet."),
                why="getting {b} feet",
            ),
            Beat("half", ("{s} gave half of the {cloth} to {m}.",), why="giving away half"),
            Beat(
                "subtract_groups",
                ("{s} used {c} feet for each of {b} boxes.",),
                shows=(
                    "The boxes take {eq} feet. That leaves {eq2} feet.",
                    "{s} uses {eq} feet and keeps {eq2} feet.",
                ),
            ),
            Beat(
                "divide",
                ("{s} cut the rest into {b} equal pieces.",),
                shows=("Each piece is {eq} feet long.", "A piece has {eq} feet."),
                asks=("How many feet long is each piece?",),
                last=True,
            ),
        ),
        asks=("How many feet of {cloth} does {n} have now?", "How many feet are left?"),
    ),
    Situation(
        "theater",
        state="{eq} seats are taken",
        unit="seats",
        slots={"place": ("theater", "stadium", "cinema", "church")},
        openers=(
            Beat(
                "times",
                (
                    "{n} counted {a} full rows of {b} seats in a {place}.",
                    "In a {place} {n} saw {a} full rows with {b} seats each.",
                ),
                shows=("The rows have {eq} seats.", "{a} rows of {b} make {eq} seats."),
                asks=("How many seats were full in the {place}?",),
            ),
            Beat(
                "sum",
                ("In a {place} {n} counted {a} full seats downstairs and {b} upstairs.",),
                shows=("Both floors have {eq} full seats.", "Adding gives {eq} full seats."),
                asks=("How many seats were full in the {place}?",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("In the break {b} people went home.",),
                shows=("Then {state}.", "That leaves {eq} full seats."),
                asks=("How many seats are still taken?",),
            ),
            Beat(
                "add",
                (
                    "{then} {b} more people took a seat.",
                    "A group of {b} people came late and sat down.",
                ),
                shows=("Then {state}.", "That makes {eq} full seats."),
            ),
            Beat(
                "from",
                ("The {place} has {b} seats.",),
                shows=("There are {eq} free seats.", "That leaves {eq} seats free."),
                asks=("How many seats are free?",),
                last=True,
            ),
            Beat(
                "multiply",
                ("Each person sitting there paid ${b}.",),
                shows=("They pay {eq} dollars.", "The {place} gets {eq} dollars."),
                asks=("How many dollars did these people pay?",),
                last=True,
            ),
        ),
        asks=("How many seats are taken now?",),
    ),
    Situation(
        "growth",
        state="it is {eq} inches tall",
        unit="inches",
        slots={"plant": ("sunflower", "tree", "vine", "corn plant", "bamboo")},
        openers=(
            Beat(
                "given",
                (
                    "{n} measured a {plant} that was {a} inches tall.",
                    "{p} {plant} was {a} inches tall.",
                ),
                shows=("The {plant} starts at {a} inches.", "At first it is {a} inches tall."),
            ),
            Beat(
                "compare",
                ("{m} has a {plant} of {a} inches, and that of {n} is {times} as tall.",),
                shows=("{p} {plant} is {eq} inches tall.",),
                asks=("How many inches tall is the {plant} of {n}?",),
            ),
        ),
        moves=(
            Beat(
                "add_groups",
                (
                    "It grew {c} inches a week for {b} weeks.",
                    "For {b} months the {plant} grew {c} inches a month.",
                ),
                shows=(
                    "It grows {eq} inches. Then it is {eq2} inches tall.",
                    "The {plant} gains {eq} inches and reaches {eq2} inches.",
                ),
            ),
            Beat(
                "add",
                (
                    "It grew {b} inches in [spring|summer].",
                    "A month later it had grown {b} inches more.",
                ),
                why="growing {b} inches",
            ),
            Beat(
                "subtract",
                ("{s} cut {b} inches off the top.", "A storm broke {b} inches off it."),
                why="losing {b} inches",
            ),
            Beat("double", ("With enough sun its height doubled.",), why="doubling"),
            Beat("half", ("A goat ate half of its height.",), why="losing half"),
        ),
        asks=("How many inches tall is the {plant} now?", "What is its height in inches now?"),
    ),
    Situation(
        "pets",
        state="{s} has {eq} cans of food",
        unit="cans",
        slots={"pet": ("dog/dogs", "cat/cats", "puppy/puppies", "kitten/kittens")},
        openers=(
            Beat(
                "times",
                (
                    "{n} feeds {a} {pets}, and each one eats {b} cans of food a week.",
                    "At a shelter {n} gives {b} cans of food to each of {a} {pets}.",
                ),
                shows=("The {pets} eat {eq} cans.", "{n} needs {eq} cans of food."),
                asks=("How many cans of food do the {pets} eat?",),
                last=True,
            ),
            Beat(
                "given",
                ("{n} bought {a} cans of food for the {pets}.", "{n} had {a} cans of {pet} food."),
                shows=("{n} starts with {a} cans.",),
            ),
        ),
        moves=(
            Beat(
                "subtract",
                ("The {pets} ate {b} cans in a week.", "{then} {s} opened {b} cans."),
                why="using {b} cans",
            ),
            Beat(
                "subtract_groups",
                ("Each of the {b} {pets} ate {c} cans.",),
                shows=(
                    "The {pets} eat {eq} cans. That leaves {eq2} cans.",
                    "They eat {eq} cans, so {s} has {eq2} cans left.",
                ),
            ),
            Beat(
                "add",
                ("A neighbor brought {b} more cans.", "{s} got {b} free cans from the store."),
                why="getting {b} cans",
            ),
            Beat(
                "divide",
                ("The {pets} eat {b} cans a day.",),
                shows=("The food lasts {eq} days.", "It is enough for {eq} days."),
                asks=("How many days will the food last?",),
                last=True,
            ),
        ),
        asks=("How many cans does {n} have now?", "How many cans of food are left?"),
    ),
)
