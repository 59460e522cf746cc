"""Jobs on Slurm: requeued, cancelled, in shards, stopped by the limit; a run of every table."""

import contextlib
import itertools
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from helpers.paths import ROOT
from helpers.slurm_node import Cluster, missing
from helpers.slurm_run import Run, allocated, requests, rule


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if missing():
        pytest.skip(f"no Slurm on this machine; not installed: {', '.join(missing())}")
    with tempfile.TemporaryDirectory(prefix="slurm-") as name, Cluster(Path(name)) as running:
        yield running


CLEAN, CONTAMINATED = "results/micro/llama2/clean_gsm8k", "results/micro/llama2/gsm8k"
LOSS, ADAPTER = f"{CLEAN}/loss.tsv", f"{CLEAN}/training/adapter/adapter_model.safetensors"
SAMPLES, SOLVE = (f"{CONTAMINATED}/cells/identity/{name}.parquet" for name in ("samples", "solve"))
NEURONS = f"{CONTAMINATED}/neurons.parquet"
RULES = [
    "fetch_questions", "split_questions", "write_questions",
    "prepare_exemplars", "prepare_instructions", "write_training_data", "train_lora",
    "decode_greedy", "localise_neurons", "sample_responses", "merge_shards",
]  # fmt: skip
ALLOWED = ("--allowed-rules", *RULES)  # the models are there already
LIMIT = 3  # minutes; Slurm looks twice a minute for jobs that exceed theirs


def finished_steps(folder: Path) -> int:
    """Up to the last checkpoint of the clean model's training."""
    states = folder.glob(f"{CLEAN}/training/adapter.work/adapter/checkpoint-*/trainer_state.json")
    return max((int(state.parent.name.split("-")[1]) for state in states), default=0)


def finished_parts(output: str) -> Callable[[Path], int]:
    """Of a job with a journal: chunks of questions, or two models with each group patched."""

    def count(folder: Path) -> int:
        journal = folder / f"{output}.work/parts.jsonl"
        return journal.read_bytes().count(b"\n") if journal.exists() else 0

    return count


# rule → what it has finished, and how much of it when it is stopped for the first and second time
STOPS: dict[str, tuple[Callable[[Path], int], int, int]] = {
    "train_lora": (finished_steps, 16, 32),  # of 48
    "sample_responses": (finished_parts(SAMPLES), 1, 2),  # of 4
    "localise_neurons": (finished_parts(NEURONS), 12, 24),  # of 34
}


@pytest.fixture(scope="module")
def long_jobs(cluster, tmp_path_factory) -> tuple[Run, dict[str, bytes]]:
    """A run that lacks what its long jobs make, and what they make without interruptions.

    The clean and the contaminated model are the base with different noise.
    """
    run = Run(cluster, tmp_path_factory.mktemp("long_jobs"), "long_jobs")
    for seed, folder in enumerate((CLEAN, CONTAMINATED)):
        write_noisy_base(run.folder / folder / "model", seed)
    run.finish(run.start(LOSS, SAMPLES, NEURONS, *ALLOWED))
    return run, run.take(LOSS, ADAPTER, SAMPLES, SOLVE, NEURONS)


def write_noisy_base(folder: Path, seed: int) -> None:
    shutil.copytree(ROOT / "workflow/resources/bases/llama2", folder)
    generator = torch.Generator().manual_seed(seed)
    path = folder / "model.safetensors"
    weights = {
        name: weight + 0.2 * weight.std() * torch.randn(weight.shape, generator=generator)
        for name, weight in load_file(path).items()
    }
    save_file(weights, path, {"format": "pt"})


def test_a_sampling_job_that_is_requeued_and_cancelled_resumes(long_jobs, cluster):
    """Requeued by Slurm, then retried by Snakemake: the same bytes as without interruptions."""
    run, expected = long_jobs
    before = len(cluster.jobs())
    contents = [b""]  # of the journal

    def finished() -> int:
        with contextlib.suppress(FileNotFoundError):  # deleted once the cell is complete
            content = (run.folder / f"{SAMPLES}.work/parts.jsonl").read_bytes()
            if content.endswith(b"\n") and content != contents[-1]:
                contents.append(content)
        return contents[-1].count(b"\n")

    process = run.start(SAMPLES, *ALLOWED)
    run.wait_until(lambda: finished() > 0, process)
    (job,) = cluster.jobs()[before:]
    number = job["JobId"]
    cluster.run("scontrol", "requeue", number)
    run.wait_until(lambda: finished() > 1, process)
    cluster.run("scancel", number)
    while process.poll() is None:
        finished()
        time.sleep(0.05)
    run.finish(process)

    assert run.take(SAMPLES, SOLVE).items() <= expected.items()
    for earlier, later in itertools.pairwise(contents):
        assert later.startswith(earlier), "a chunk was sampled again"
    assert len(set(contents[-1].splitlines())) == contents[-1].count(b"\n")
    cancelled, retried = cluster.jobs()[before:]
    assert (cancelled["JobState"], cancelled["Restarts"]) == ("CANCELLED", "1")
    assert retried["JobState"] == "COMPLETED"
    gpus, memory, minutes = requests()["sample_responses"]
    assert allocated(cancelled) == (gpus, memory, minutes)
    assert allocated(retried) == (gpus, 2 * memory, 2 * minutes)


def test_the_shards_of_a_cell_are_one_array_and_merge_to_the_same_cell(long_jobs, cluster):
    run, expected = long_jobs
    before = len(cluster.jobs())
    (run.folder / "shards.yaml").write_text("sampling: { num_shards: 3 }")
    array = ("--slurm-array-jobs", "sample_responses")
    run.finish(run.start(SAMPLES, *array, *ALLOWED, overlays=("shards.yaml",)))
    assert run.take(SAMPLES, SOLVE).items() <= expected.items()
    *tasks, merging = cluster.jobs()[before:]
    assert [rule(task) for task in tasks] == ["sample_responses"] * 3
    assert len({task["ArrayJobId"] for task in tasks}) == 1
    assert rule(merging) == "merge_shards"
    requested = requests()
    assert allocated(merging) == requested["merge_shards"]
    for task in tasks:
        gpus, memory, minutes = allocated(task)
        requested_gpus, requested_memory, requested_minutes = requested["sample_responses"]
        assert (gpus, minutes) == (requested_gpus, requested_minutes)
        # The plugin adds memory for the commands of the array, which travel in one line.
        assert requested_memory <= memory < requested_memory + 100


def test_jobs_that_need_three_slots_of_the_time_limit_end_with_the_same_bytes(long_jobs, cluster):
    """Held twice, however fast the machine is, until Slurm stops them at the limit."""
    run, expected = long_jobs
    before = len(cluster.jobs())
    (run.folder / "limit.yaml").write_text(f"max_runtime: {LIMIT}")
    stops = [
        (name, finished, amount)
        for name, (finished, *amounts) in STOPS.items()
        for amount in amounts
    ]

    def all_are_held() -> bool:
        for stop in list(stops):
            name, finished, amount = stop
            if finished(run.folder) >= amount:
                hold(cluster, name)
                stops.remove(stop)
        return not stops

    retries = ("--retries", "5")  # in case that a slow machine does less in a slot
    process = run.start(LOSS, SAMPLES, NEURONS, *retries, *ALLOWED, overlays=("limit.yaml",))
    run.wait_until(all_are_held, process)
    run.finish(process)

    assert run.take(*expected) == expected
    jobs = cluster.jobs()[before:]
    assert {allocated(job)[2] for job in jobs} == {LIMIT}
    for name in STOPS:
        slots = [job for job in jobs if rule(job) == name]
        assert len(slots) >= 3
        assert [job["JobState"] for job in slots] == ["TIMEOUT"] * (len(slots) - 1) + ["COMPLETED"]
        _, memory, _ = requests()[name]
        assert [allocated(job)[1] for job in slots] == [memory] + [2 * memory] * (len(slots) - 1)


def hold(cluster: Cluster, name: str) -> None:
    """Stop the processes of a rule's latest job; they remain until Slurm ends the job."""
    number = [job["JobId"] for job in cluster.jobs() if rule(job) == name][-1]
    cluster.run("scancel", "--signal=STOP", number)


@pytest.fixture(scope="module")
def tables(cluster, tmp_path_factory) -> tuple[Run, list[dict[str, str]]]:
    """A run of every table, from one model in both benchmarks, and its jobs."""
    before = len(cluster.jobs())
    run = Run(cluster, tmp_path_factory.mktemp("tables"), "tables")
    run.finish(run.start("tables"))
    return run, cluster.jobs()[before:]


def test_only_the_heavy_rules_are_submitted_once_per_job(tables):
    """Data and tables are made where Snakemake runs."""
    _, jobs = tables
    assert Counter(map(rule, jobs)) == {
        "write_training_data": 3, "train_lora": 3, "merge_lora": 3, "decode_greedy": 3,
        "sample_responses": 2 + 2 * 4 + 1, "filter_responses": 2, "localise_neurons": 2,
        "rank_clean_tokens": 1, "measure_recovery": 1, "replay_rail": 2, "compute_metrics": 2,
        "compute_ablation_metrics": 1, "measure_overlap": 3,
    }  # fmt: skip
    assert {job["JobState"] for job in jobs} == {"COMPLETED"}


def test_every_job_gets_the_resources_that_its_rule_requests(tables):
    _, jobs = tables
    requested = requests()
    requested["compute_ablation_metrics"] = requested["compute_metrics"]  # inherited
    assert requested["sample_responses"][0] == 1
    assert requested["compute_metrics"][0] == 0
    assert {(rule(job), allocated(job)) for job in jobs} == {
        (name, requested[name]) for name in set(map(rule, jobs))
    }
