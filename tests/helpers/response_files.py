"""Files of responses in the formats that `zerogap score` reads; a path may be a name."""

import csv
import json
from pathlib import Path


def text(path, *lines):
    Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return Path(path)


def json_lines(path, rows):
    return text(path, *(r if isinstance(r, str) else json.dumps(r) for r in rows))


def comma_separated(path, rows):
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return Path(path)


def record(doc_id, responses, *, kind="strict-match", gold="18", match=1.0, **more):
    """A line of lm_eval 0.4.13's samples_*.jsonl, without the prompt."""
    return {
        "doc_id": doc_id,
        "doc": {"question": "How much?", "answer": f"9 + 9 = 18\n#### {gold}"},
        "target": gold,
        "arguments": {"gen_args_0": {"arg_0": "Q: …", "arg_1": {"until": ["Q:"]}}},
        "resps": [responses],
        "filtered_resps": [responses[0]],
        "filter": kind,
        "metrics": ["exact_match"],
        "doc_hash": f"d{doc_id}",
        "prompt_hash": "p",
        "target_hash": "t",
        "exact_match": match,
    } | more
