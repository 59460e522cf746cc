"""Where a benchmark's questions come from: the hub, local files, or a generator.

The argument is always the `questions` section of a benchmark file; the results are entries of
:mod:`zerogap.data.gsm8k_format`.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from zerogap.data import gsm8k_format, gsm_symbolic, toy
from zerogap.data.answers import canonical
from zerogap.data.gsm8k_format import KEYS, SPLITS, Entry, ParseGold, fingerprint
from zerogap.errors import InputError
from zerogap.io.hub import hub_problem

_COMMIT = re.compile(r"[0-9a-f]{40}")


def fetch(
    questions: Mapping[str, Any], seed: int, parse_gold: ParseGold = canonical
) -> dict[str, list[Entry]]:
    """Fetch the entries of both splits.

    Questions from the hub must have the hash that is configured, if any; for local files, a
    difference from it is only printed.

    The seed is that of the toy generator; the other sources have one fixed data set. The gold
    answers of files are checked with `parse_gold`.

    Raises:
        InputError: an entry is invalid, the hub cannot be read, or what it has is not the original.
    """
    source, hub = questions["source"], questions.get("hub")
    options = questions[source]
    if source == "generated":
        return {split: _generated(options[f"num_{split}"], seed, split) for split in SPLITS}
    if source == "gsm_symbolic":
        return gsm_symbolic.entries(**options)
    if source == "files":
        entries = {split: gsm8k_format.load_entries(options[split], parse_gold) for split in SPLITS}
    else:
        entries = _from_hub(options["repository"], options["revision"])
    if not hub or not hub["sha256"]:
        return entries
    actual = fingerprint(entries)
    problem = f"the questions' sha256 is {actual}, but questions.hub.sha256 says {hub['sha256']}"
    if actual == hub["sha256"]:
        print(f"these are the questions of the original data set (sha256 {actual})")
    elif source == "hub":
        raise InputError(
            f"{hub['repository']}@{hub['revision']}: {problem}; pin another revision, or set the "
            "hash to null to accept any questions"
        )
    else:
        print(f"the files are not the original data set: {problem}")
    return entries


def fresh(questions: Mapping[str, Any], number: int, seed: int) -> list[Entry]:
    """New questions of a generator, none of which is in its data set of this seed.

    Raises:
        InputError: the generator has fewer than `number`.
    """
    known = {entry["question"] for split in fetch(questions, seed).values() for entry in split}
    options = questions[questions["source"]]
    size = options["num_test"] + 2 * number
    if questions["source"] == "gsm_symbolic":
        others = gsm_symbolic.entries(**options | {"num_train": 0, "num_test": size})["test"]
    else:
        others = _generated(size, seed + 1, "test")
    return [entry for entry in others if entry["question"] not in known][:number]


def _generated(num_questions: int, seed: int, split: str) -> list[Entry]:
    return [
        {"question": problem.question, "answer": f"{problem.rationale}\n#### {problem.gold}"}
        for problem in toy.problems(num_questions, seed, split)
    ]


def _from_hub(repository: str, revision: str) -> dict[str, list[Entry]]:
    """The entries of a data set on the hub, configuration "main".

    Raises:
        InputError: the data set cannot be loaded or has other columns.
    """
    import datasets  # takes seconds to import, and the other sources do not need it

    commit = resolve_commit(repository, revision)
    print(f"{repository} at commit {commit}")
    entries = {}
    for split in SPLITS:
        with hub_errors(repository, commit, f", split {split}"):
            table = datasets.load_dataset(repository, "main", revision=commit, split=split)
        try:
            entries[split] = [{key: row[key] for key in KEYS} for row in table]
        except KeyError as error:
            raise InputError(
                f"{repository}@{commit}: has no column {error}; use a data set with question and "
                "answer"
            ) from error
    return entries


def resolve_commit(repository: str, revision: str) -> str:
    """The commit that a revision of a data set on the hub refers to.

    Raises:
        InputError: the hub does not know the revision or cannot be reached.
    """
    if _COMMIT.fullmatch(revision):
        return revision
    import huggingface_hub

    with hub_errors(repository, revision):
        return str(huggingface_hub.HfApi().dataset_info(repository, revision=revision).sha)


@contextlib.contextmanager
def hub_errors(repository: str, revision: str, part: str = "") -> Iterator[None]:
    """Say in one line why a data set on the hub cannot be loaded, with the remedies."""
    try:
        yield
    except Exception as error:  # whatever the hub's libraries raise: offline, not found, …
        problem = str(error)
        if not isinstance(error, InputError):
            reason = hub_problem(error, repository, revision, "dataset")
            problem = f"could not be loaded from the hub: {reason}"
        raise InputError(f"{repository}@{revision}{part}: {problem}") from error
