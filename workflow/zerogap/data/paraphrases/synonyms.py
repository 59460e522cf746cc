"""The synonyms of the rule-based paraphraser.

Each entry is a regular expression and its replacements, which keep number, tense and the choice
between 'a' and 'an', and neither add nor remove a number.
"""

import re

_TIME = "day|week|month|year|morning|afternoon|evening|night|hour|minute"
_RATED = f"{_TIME}|pound|mile|foot|meter|gallon|liter|page|item|person|ounce|piece"

_ENTRIES: tuple[tuple[str, tuple[str, ...]], ...] = (
    # verbs
    (r"bought", ("purchased",)),
    (r"buys", ("purchases",)),
    (r"(?<!to )buy", ("purchase",)),
    (r"to buy", ("to purchase", "to get")),
    (r"buying", ("purchasing",)),
    (r"purchased", ("bought",)),
    (r"purchases(?= (?:a|an|the|\d))", ("buys",)),
    (r"gave(?! (?:up|away|birth|out))", ("handed",)),
    (r"gives(?! (?:up|away|birth|out))", ("hands",)),
    (r"giving(?= (?:him|her|them|[A-Z]))", ("handing",)),
    (r"ate", ("consumed",)),
    (r"eats", ("consumes",)),
    (r"eat", ("consume",)),
    (r"eaten", ("consumed",)),
    (r"(?:made|earned)(?= \$)", ("took in", "got paid")),
    (r"(?:makes|earns)(?= \$)", ("takes in", "gets paid")),
    (r"earns", ("makes",)),
    (r"earned", ("made",)),
    (r"earn", ("make",)),
    (r"wants to", ("would like to", "wishes to", "plans to")),
    (r"want to", ("would like to", "wish to")),
    (r"wanted to", ("wished to", "planned to")),
    (r"needs to", ("has to", "must")),
    (r"needed to", ("had to",)),
    (r"has to", ("must", "needs to")),
    (r"had to", ("needed to",)),
    (r"needs(?= (?:a|an|the|\$|\d))", ("requires",)),
    (r"plans to", ("intends to", "means to")),
    (r"decided to", ("chose to",)),
    (r"decides to", ("chooses to",)),
    (r"(?<!has )(?<!had )(?<!have )(?<!was )started", ("began",)),
    (r"starts", ("begins",)),
    (r"finds(?= (?:a|an|the|\d|some))", ("discovers", "comes across")),
    (r"found(?= (?:a|an|the|\d|some|another))", ("came across", "discovered")),
    (r"collected", ("gathered",)),
    (r"collects", ("gathers",)),
    (r"picked(?! up| out)", ("gathered", "collected")),
    (r"picks(?! up| out)", ("gathers",)),
    (r"(?:owned|collected)(?= \d)", ("had", "possessed")),
    (r"received", ("got",)),
    (r"receives", ("gets",)),
    (r"got(?= \$)", ("received",)),
    (r"gets(?= \$)", ("receives",)),
    (r"puts(?= (?:the|all|\d|a|his|her|them|it))", ("places",)),
    (r"saw(?= \d)", ("spotted", "noticed")),
    (r"went to", ("headed to",)),
    (r"goes to", ("heads to",)),
    (r"lives (?=in|near|on)", ("resides ",)),
    (r"takes(?= \w+ (?:minutes|hours|days))", ("requires",)),
    (r"costs(?= \$)", ("is priced at", "sells for")),
    (r"that cost(?= \$)", ("priced at",)),
    (r"threw away", ("got rid of", "discarded")),
    (r"lost(?= \d)", ("misplaced", "no longer had")),
    (r"uses(?= \d)", ("uses up",)),
    (r"used(?= \d)", ("used up",)),
    (r"filled", ("filled up",)),
    (r"scored", ("notched up",)),
    (r"ordered", ("asked for",)),
    (r"shared(?= (?:the|it|them|all))", ("divided",)),
    (r"shared(?= equally)", ("divided",)),
    (r"spent (?=half|all|the rest)", ("used up ",)),
    (r"saves", ("puts aside",)),
    (r"saved", ("put aside",)),
    (r"counted", ("tallied",)),
    (r"works as", ("has a job as", "is employed as")),
    (r"has(?= \d+ (?!times|more|fewer|less|percent|years)\w)", ("has a total of",)),
    (r"had(?= \d+ (?!times|more|fewer|less|percent|years)\w)", ("had a total of",)),
    (r"are left", ("remain", "are still there")),
    (r"is left", ("remains",)),
    (r"were left", ("remained",)),
    (r"have left", ("still have",)),
    (r"has left", ("still has",)),
    (r"is going to", ("will",)),
    (r"can(?= (?:make|buy|fill|hold|carry|fit))", ("is able to",)),
    # totals and order
    (r"in total", ("altogether", "all together", "in all")),
    (r"altogether", ("in total", "overall")),
    (r"in all(?! (?:the|of|\d))", ("in total", "altogether")),
    (r"in the end", ("when all is done", "at the close")),
    (r"so far", ("up to this point",)),
    (r"the total cost", ("the overall cost",)),
    (r"the total amount", ("the overall amount",)),
    (r"the rest of", ("the remainder of",)),
    (r"the rest(?! of)", ("what remains",)),
    (r"the remainder", ("the rest",)),
    (r"the remaining", ("the leftover",)),
    (r"now(?! on)", ("at present", "at this point")),
    (r"equally", ("evenly",)),
    (r"evenly", ("equally",)),
    (r"the same number of", ("an equal number of",)),
    (r"another(?= (?:\$|\d))", ("a further",)),
    (r"(?<= )each(?=[.?])", ("apiece",)),
    (rf"every(?= (?:{_TIME})\b)", ("each",)),
    (rf"each(?= (?:{_TIME})\b)", ("every",)),
    (rf"per(?= (?:{_RATED})\b)", ("for every", "for each")),
    (rf"(?<=\d) an?(?= (?:{_RATED})\b)", (" per", " for every")),
    (r"years old", ("years of age",)),
    (r"daily", ("each day",)),
    (r"weekly", ("each week",)),
    (r"only(?= \d)", ("just", "no more than")),
    (r"a lot of", ("plenty of", "lots of")),
    (r"some of", ("a few of",)),
    # connectives and places in time
    (r"because", ("since", "as")),
    (r", but", (", yet", ", though")),
    (r"while(?! \w+ing)", ("whereas",)),
    (r"after that", ("next", "afterwards")),
    (r"afterwards", ("after that",)),
    (r"then(?=,)", ("after that", "next")),
    (r"then(?= [a-z])(?! there)", ("next",)),
    (r"(?<=[.!] )Then(?= [A-Z])", ("Next,", "After that,")),
    (r"(?<![a-z] )\b[Ll]ater(?=,)", ("some time later", "at a later time")),
    (r"soon(?=,)", ("before long",)),
    (r"the next day", ("on the following day", "a day later")),
    (r"the following day", ("the next day",)),
    (r"last (?=week|month|year)", ("in the past ",)),
    (r"in the (?=morning|afternoon|evening)", ("during the ",)),
    (r"that evening", ("in the evening of that day",)),
    (r"at the end of", ("by the close of",)),
    (r"at the beginning of", ("at the start of",)),
    (r"at first", ("to begin with",)),
    (r"if(?= (?:he|she|they|it|the|each|there|[A-Z]))", ("supposing",)),
    (r"as well as", ("along with",)),
    # nouns and adjectives
    (r"children", ("kids",)),
    (r"kids", ("children",)),
    (r"mom", ("mother",)),
    (r"dad", ("father",)),
    (r"mother", ("mom",)),
    (r"father", ("dad",)),
    (r"grandma", ("grandmother",)),
    (r"grandmother", ("grandma",)),
    (r"(?<=the )store", ("shop",)),
    (r"(?<=the )shop", ("store",)),
    (r"students", ("pupils",)),
    (r"student", ("pupil",)),
    (r"teacher", ("tutor",)),
    (r"movie", ("film",)),
    (r"movies", ("films",)),
    (r"(?<!field )\btrip", ("journey",)),
    (r"gifts", ("presents",)),
    (r"gift(?! card| shop)", ("present",)),
    (r"photos", ("pictures",)),
    (r"bicycle", ("bike",)),
    (r"bike", ("bicycle",)),
    (r"bikes", ("bicycles",)),
    (r"bicycles", ("bikes",)),
    (r"big", ("large",)),
    (r"bigger", ("larger",)),
    (r"money", ("cash",)),
    (r"couple", ("pair",)),
    (r"whole", ("entire",)),
    (r"pals", ("friends",)),
    (r"all of(?= (?:the|his|her|their|them))", ("every one of",)),
    (r"friends", ("pals",)),
    (r"friend", ("pal",)),
    (r"company", ("firm",)),
    (r"sandwiches", ("subs",)),
    (r"vacation", ("holiday",)),
    (r"parking lot", ("car park",)),
    (r"car park", ("parking lot",)),
)

# Only whole words are replaced.
SYNONYMS: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = tuple(
    (re.compile(rf"(?<![\w'’-]){pattern}(?![\w'’-])"), options)
    if re.match(r"[a-zA-Z(]", pattern) and not pattern.startswith("(?<")
    else (re.compile(rf"{pattern}(?![\w'’-])"), options)
    for pattern, options in _ENTRIES
)

# Base form → past tense, for turning 'did she buy' into 'she bought'.
_VERBS = (
    "add/added bake/baked bring/brought build/built buy/bought carry/carried catch/caught "
    "charge/charged collect/collected count/counted cut/cut deliver/delivered donate/donated "
    "drink/drank drive/drove earn/earned eat/ate feed/fed fill/filled find/found get/got "
    "give/gave go/went hand/handed have/had hike/hiked keep/kept lose/lost make/made "
    "move/moved need/needed order/ordered pack/packed pay/paid pick/picked plant/planted "
    "play/played print/printed put/put read/read receive/received ride/rode run/ran save/saved "
    "score/scored see/saw sell/sold send/sent serve/served share/shared sleep/slept "
    "spend/spent swim/swam take/took travel/traveled use/used walk/walked wash/washed "
    "watch/watched win/won work/worked write/wrote start/started leave/left"
)
PAST = dict(pair.split("/") for pair in _VERBS.split())
# Base form → third person singular.
PRESENT = {
    verb: {"have": "has", "go": "goes", "carry": "carries"}.get(
        verb, f"{verb}es" if verb.endswith(("s", "sh", "ch", "x")) else f"{verb}s"
    )
    for verb in PAST
}
