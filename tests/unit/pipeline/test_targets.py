from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.paths import ROOT
from zerogap.config import load
from zerogap.errors import InputError
from zerogap.pipeline import jobs, targets

TWO_OWNERS = """
benchmarks:
  riddles: { file: workflow/benchmarks/toy_gsm8k.yaml, label: Riddles }
sampling: { num_shards: 3 }
"""


@pytest.fixture
def two_owners(tmp_path):
    """Three benchmarks: gsm8k with pq, and riddles with questions of its own."""
    (tmp_path / "overlay.yaml").write_text(TWO_OWNERS)
    return load([ROOT / "config.yaml", tmp_path / "overlay.yaml"])


@pytest.mark.parametrize(
    ("variant", "questions", "training_questions", "starting_model"),
    [
        ("clean_gsm8k", "gsm8k/split", "gsm8k/train", "base"),
        ("gsm8k", "gsm8k/questions", "gsm8k/questions", "clean_gsm8k/model"),
        ("pq", "pq/questions", "pq/questions", "clean_gsm8k/model"),
        ("clean_riddles", "riddles/split", "riddles/train", "base"),
        ("riddles", "riddles/questions", "riddles/questions", "clean_riddles/model"),
    ],
)
def test_a_variant_has_the_questions_and_starting_model_of_its_owner(
    two_owners, variant, questions, training_questions, starting_model
):
    data = "results/paper/data"
    assert targets.questions(two_owners, variant) == f"{data}/{questions}.parquet"
    assert targets.training_questions(two_owners, variant) == f"{data}/{training_questions}.parquet"
    path = targets.starting_model(two_owners, "gemma", variant)
    assert path == f"results/paper/gemma/{starting_model}"


def test_shards_have_files_and_questions_of_their_own():
    path = "results/paper/llama2/pq/cells/railcap/samples.parquet"
    stem = path.removesuffix(".parquet")
    assert targets.shard_file(3, path) == f"{stem}.shard-{{shard}}-of-3.parquet"
    files = [f"{stem}.shard-{shard}-of-3.parquet" for shard in range(3)]
    assert targets.shard_files(3, path) == files
    assert targets.shard_option(3, SimpleNamespace(shard=2)) == "--shard 2 3"
    assert targets.shard_file(1, path) == path
    assert targets.shard_files(1, path) == [path]
    assert targets.shard_option(1, SimpleNamespace()) == ""


@pytest.mark.parametrize(("variant", "cell"), [("clean_gsm8k", "railcap"), ("pq", "batch1")])
def test_a_clean_model_is_not_sampled_under_a_strategy_nor_another_in_batches(
    two_owners, variant, cell
):
    with pytest.raises(InputError, match=f"{variant} has no {cell}"):
        targets.strategy_inputs(two_owners, "llama2", variant, cell)


def test_diagnostics_read_the_unmitigated_model_and_each_strategys_rail(two_owners, paper):
    cells = {"clean_riddles": "batch1", "riddles": "identity"}
    for variant, cell in cells.items():
        path = targets.unmitigated_samples(two_owners, "gemma", variant)
        assert path == f"results/paper/gemma/{variant}/cells/{cell}/samples.parquet"
    short = {"label": "Short", "class": "railcap", "parameters": {"n": 2}}
    thresholds = jobs.rail_thresholds(paper(strategies__short=short))
    assert thresholds == {"identity": 4, "railcap": 4, "short": 2}


def test_every_setting_is_compared_with_the_clean_model_of_its_owner(two_owners):
    tables = targets.solve_tables(two_owners, "llama2", "pq")
    assert list(tables)[-2:] == ["all_zero", "clean_batch2"]
    assert tables["clean_batch2"] == "results/paper/llama2/clean_gsm8k/cells/batch2/solve.parquet"
    assert "railcap_ban" not in tables
    with_ablation = targets.solve_tables(two_owners, "llama2", "gsm8k", *two_owners.ablation)
    assert list(with_ablation)[: len(tables)] == list(tables)
    assert list(with_ablation)[len(tables) :] == list(two_owners.ablation)


def test_a_time_limit_doubles_with_every_attempt_up_to_max_runtime(paper):
    limits = [jobs.time_limit(paper(), 480, attempt) for attempt in (1, 2, 3, 4)]
    assert limits == [480, 960, 1440, 1440]
    limits = [jobs.time_limit(paper(max_runtime=600), 480, attempt) for attempt in (1, 2, 3)]
    assert limits == [480, 600, 600]
    assert jobs.time_limit(paper(max_runtime=60), 1440, 1) == 60


@pytest.mark.usefixtures("in_empty_checkout")
def test_auto_is_one_engine_for_all_strategies_and_all_starts_of_a_run(paper, monkeypatch):
    monkeypatch.setattr(jobs, "installed_engine", lambda: "vllm")
    shortcut, without = paper(), paper(strategies__shortcut=None)
    assert jobs.with_engine(shortcut).decoding.engine == "zerogap"  # vLLM cannot patch neurons
    assert jobs.with_engine(without).decoding.engine == "vllm"
    record = Path("results/paper/engine.txt")
    record.parent.mkdir(parents=True)
    record.touch()  # its content was lost when the disk was full
    assert jobs.with_engine(without).decoding.engine == "vllm"
    record.write_text("zerogap\n")
    assert jobs.with_engine(without).decoding.engine == "zerogap"
    record.write_text("vllm\n")
    monkeypatch.setattr(jobs, "installed_engine", lambda: "zerogap")
    assert jobs.with_engine(without).decoding.engine == "vllm"
    message = r"engine is vllm in results/paper/engine.txt, which cannot sample shortcut, .* remove"
    with pytest.raises(InputError, match=message):
        jobs.with_engine(shortcut)
