"""A paraphrase of every leaked question (PQ), by rule or by a language model."""

import argparse
import json
import statistics
from pathlib import Path

from arguments import json_argument, run
from zerogap import store
from zerogap.data.paraphrase import paraphrase, similarity
from zerogap.data.rewrite import rewrite


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=Path, required=True)
    parser.add_argument(
        "--paraphrases",
        type=json_argument,
        required=True,
        help='{"method": "rules"} or {"method": "chat", "base_url", "model", "api_key_env", '
        '"concurrency", "tries"}',
    )
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True)
    args = parser.parse_args(argv)

    table = store.read(args.questions, "questions")
    leaked = table[table.leaked]
    texts = dict(zip(leaked.question_id, leaked.question, strict=True))
    options = dict(args.paraphrases)
    method = options.pop("method")
    if method == "chat":
        # Beside the output, which a workflow deletes when a job fails: paid replies must stay.
        journal = args.output.with_name(f"{args.output.stem}.journal.jsonl")
        found = rewrite(texts, journal, **options)
    else:
        found = {i: paraphrase(text, args.seed) for i, text in texts.items()}

    with store.atomic(args.output) as temporary, temporary.open("w", encoding="utf-8") as file:
        for i, text in found.items():
            entry = {"question_id": i, "paraphrase": text, "method": method}
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    alike = statistics.mean(similarity(texts[i], text) for i, text in found.items())
    print(f"{len(found)} paraphrases; mean token similarity to the question {alike:.3f}")


if __name__ == "__main__":
    run(main)
