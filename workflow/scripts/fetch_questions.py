"""The training and test questions of the configured source, in OpenAI's JSON Lines format."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from arguments import json_argument, run
from zerogap.data import gsm8k, questions
from zerogap.data.extraction import rule
from zerogap.data.toy.word_problems import problems
from zerogap.errors import InputError


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--source",
        type=json_argument,
        required=True,
        help='{"kind": "generated", "n_train", "n_test", "seed"}, '
        '{"kind": "files", "train", "test"} or {"kind": "hub", "repository", "revision"}; '
        'the last two with "rows" and "sha256" of the original, or null',
    )
    parser.add_argument("--extraction", default="numeric", help="see zerogap.data.extraction")
    parser.add_argument("--train", type=Path, required=True)
    parser.add_argument("--test", type=Path, required=True)
    args = parser.parse_args(argv)

    read_gold = rule(args.extraction).gold
    outputs = {"train": args.train, "test": args.test}
    entries = {split: _entries(args.source, split, read_gold) for split in outputs}
    if args.source.get("sha256"):
        _compare(entries, args.source)
    for split, path in outputs.items():
        gsm8k.write(path, entries[split], read_gold)
    rows = {split: gsm8k.load(path, read_gold) for split, path in outputs.items()}
    questions.disjoint(rows["test"], rows["train"])
    print(f"{len(rows['train'])} training questions, {len(rows['test'])} test questions")


def _entries(
    source: Mapping[str, Any], split: str, read_gold: Callable[[str], str]
) -> list[dict[str, str]]:
    match source["kind"]:
        case "generated":
            made = problems(source[f"n_{split}"], source["seed"], split)
            return [gsm8k.entry(one.question, one.rationale, one.gold) for one in made]
        case "files":
            return gsm8k.load_entries(source[split], read_gold)
        case "hub":
            revision = gsm8k.commit(source["repository"], source["revision"])
            print(f"{source['repository']}, {split}, at commit {revision}")
            return gsm8k.from_hub(source["repository"], revision, split)
        case kind:
            raise ValueError(kind)


def _compare(entries: dict[str, list[dict[str, str]]], source: Mapping[str, Any]) -> None:
    """Stop where the hub gives something else than was pinned; of local files only tell."""
    try:
        gsm8k.check_original(entries, source)
    except InputError as error:
        if source["kind"] == "hub":
            raise InputError(f"{source['repository']}@{source['revision']}: {error}") from error
        print(f"these files are not the original data set: {error}")
    else:
        print(f"the original data set (sha256 {source['sha256']})")


if __name__ == "__main__":
    run(main)
