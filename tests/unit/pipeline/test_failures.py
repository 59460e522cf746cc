from zerogap.pipeline.failures import FailedJob, describe


def test_failed_jobs_are_listed_with_the_ends_of_their_logs(tmp_path):
    log, empty = tmp_path / "train.log", tmp_path / "empty.log"
    log.write_text("".join(f"line {k}\n" for k in range(9)) + "error: the disk is full\n\n")
    empty.touch()
    text = describe(
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
