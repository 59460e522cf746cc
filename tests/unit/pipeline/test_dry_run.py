"""What a dry run prints."""

import logging

from zerogap.pipeline.dry_run import CountsOnce

RECORDS = [
    {"msg": "Building DAG of jobs..."},
    {"msg": "Job stats: 3", "event": "run_info"},
    {"msg": "Job stats: 3", "event": "run_info"},
    {"msg": "Reasons:\n    output files have to be generated: train_lora"},
    {"msg": "This was a dry-run"},
]


def test_the_counts_are_printed_once_and_the_reasons_not_at_all():
    counts_once = CountsOnce()
    printed = [r["msg"] for r in RECORDS if counts_once.filter(logging.makeLogRecord(r))]
    assert printed == ["Building DAG of jobs...", "Job stats: 3", "This was a dry-run"]
