"""What a run says in the terminal: targets, counts, failures and the line on long jobs."""

import logging

import pytest

from zerogap.errors import InputError
from zerogap.pipeline.terminal import (
    CountsOnce,
    FailedJob,
    Progress,
    check_targets,
    describe_failures,
)

TARGETS = ["all", "table_main", "table_pairs", "figure_strata"]


def test_targets_and_files_are_accepted():
    check_targets(["all", "table_main", "results/quick/llama2/base"], TARGETS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tabel_main", "'tabel_main' is not a target; did you mean table_main, table_pairs? "),
        ("nonsense", "'nonsense' is not a target; docs/workflow.md#targets lists all"),
    ],
)
def test_an_unknown_target_is_answered_with_the_nearest_names(name, message):
    with pytest.raises(InputError) as caught:
        check_targets(["all", name], TARGETS)
    assert str(caught.value).startswith(message)


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


def test_failed_jobs_are_listed_with_the_ends_of_their_logs(tmp_path):
    log, empty = tmp_path / "train.log", tmp_path / "empty.log"
    log.write_text("".join(f"line {k}\n" for k in range(9)) + "error: the disk is full\n\n")
    empty.touch()
    text = describe_failures(
        [
            FailedJob("train_lora", {"model": "llama2", "variant": "pq"}, [str(log)]),
            FailedJob("make_table", {"table": "main"}, [str(empty)]),
            FailedJob("merge_lora", {}, [str(tmp_path / "none.log")]),
        ]
    )
    assert text.splitlines() == [
        "3 jobs failed:",
        "make_table table=main",
        f"  log: {empty}",
        "  | (the log is empty)",
        "merge_lora",
        f"  log: {tmp_path / 'none.log'}",
        "  | (the job was stopped before it wrote its log)",
        "train_lora model=llama2 variant=pq",
        f"  log: {log}",
        *(f"  | line {k}" for k in range(5, 9)),
        "  | error: the disk is full",
    ]


class Run:
    """A run of three trainings and four samplings, whose clock is set by hand."""

    def __init__(self):
        self.now = 0.0
        self.lines = []
        self.progress = Progress(
            ["train_lora", "sample_responses"], self.lines.append, lambda: self.now
        )
        self.event("run_info", stats={"train_lora": 3, "sample_responses": 4, "total": 50})

    def event(self, name, **values):
        values = {"event": name, **values}
        self.progress.handle(logging.makeLogRecord(values))

    def start(self, **jobs):
        """Start jobs together: rule → place, jobs numbered by the hash of both."""
        numbers = {rule: f"{rule} {place}" for rule, place in jobs.items()}
        self.event("job_started", jobs=list(numbers.values()))
        for rule, place in jobs.items():
            wildcards = dict(enumerate(place.split("/")))
            self.event("job_info", jobid=numbers[rule], rule_name=rule, wildcards=wildcards)

    def finish(self, rule, place, at):
        self.now = at
        self.event("job_finished", job_id=f"{rule} {place}")


@pytest.fixture
def run():
    return Run()


def test_jobs_that_start_together_make_one_line(run):
    run.start(train_lora="llama2/gsm8k", sample_responses="gemma/pq/ted")
    assert run.lines == [
        "0 of 7 long jobs done; running: train_lora llama2/gsm8k, sample_responses gemma/pq/ted"
    ]


def test_other_jobs_are_neither_listed_nor_counted(run):
    run.start(write_training_data="llama2")
    assert run.lines == []
    run.start(write_training_data="gemma", train_lora="llama2/gsm8k", make_table="main")
    assert run.lines == ["0 of 7 long jobs done; running: train_lora llama2/gsm8k"]


def test_a_dry_run_has_no_line(run):
    run.event("job_info", jobid=1, rule_name="train_lora", wildcards={})
    assert run.lines == []


def test_the_time_left_is_that_of_the_jobs_left_at_the_pace_so_far(run):
    for number in range(3):
        run.start(train_lora=f"llama2/{number}")
        run.finish("train_lora", f"llama2/{number}", at=run.now + 300)
        assert ", about" not in run.lines[-1]
    run.start(sample_responses="a")
    run.finish("sample_responses", "a", at=1500)
    run.start(sample_responses="b")
    # Three samplings of ten minutes are left, one at a time.
    assert run.lines[-1] == (
        "4 of 7 long jobs done, about 30 min left; running: sample_responses b"
    )


def test_the_time_left_is_a_lower_bound_until_every_rule_has_a_finished_job(run):
    run.start(train_lora="a")
    run.finish("train_lora", "a", at=600)
    run.start(sample_responses="a")
    assert "1 of 7 long jobs done, at least 20 min left" in run.lines[-1]


def test_jobs_that_run_at_once_take_less_time(run):
    run.start(train_lora="a", sample_responses="a")
    run.now = 600
    run.finish("train_lora", "a", at=600)
    run.finish("sample_responses", "a", at=600)
    run.start(train_lora="b", sample_responses="b")
    # Two trainings and three samplings of ten minutes are left, two at a time.
    assert "2 of 7 long jobs done, about 25 min left" in run.lines[-1]


def test_a_failed_job_does_not_run_any_more(run):
    run.start(train_lora="a")
    run.event("job_error", jobid="train_lora a")
    run.start(train_lora="b")
    assert run.lines[-1] == "0 of 7 long jobs done; running: train_lora b"


def test_a_long_list_is_cut(run):
    for place in "abcdef":
        run.start(sample_responses=place)
    assert run.lines[-1].endswith("sample_responses d and 2 more")
