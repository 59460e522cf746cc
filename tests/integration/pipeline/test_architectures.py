"""Every published architecture, from training to every strategy: a rehearsal of each.

`make test-architectures` runs them all, `make test-slow` the paper's three.
"""

import json
import re
import subprocess
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers import published_models
from helpers.configurations import nested
from helpers.dry_runs import environment, link_checkout
from helpers.paths import ROOT
from helpers.scripts import python
from zerogap.engine import loading
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.io import parquet
from zerogap.io.resume import exclusive

FAMILIES = {"llama2": "llama", "gemma4": "gemma4", "pythia": "gpt_neox"}  # of the paper's models

HYBRIDS = {"qwen3_5"}  # decoded with the model's own cache

ARCHITECTURES = [
    pytest.param(name, marks=[pytest.mark.slow] + [pytest.mark.matrix] * (name not in FAMILIES))
    for name in published_models.CONFIGS
]
OVERLAY = {
    "models.gemma": None,
    "models.pythia": None,
    "benchmarks.gsm8k.prompt": {"exemplars": "toy", "num_shots": 2},
    "training.lora.rank": 4,
    # With these, every strategy has an effect on random weights.
    "strategies.railcap.parameters": {"n": 1},
    "strategies.lne_blocking.parameters": {"beta": 50.0},
    "sampling": {"temperature": 0.2, "dtype": "float32"},
    "offline": True,
}


def rehearse(folder: Path, **overlay) -> subprocess.CompletedProcess:
    """Rehearse the paper's run with one model, `published`, in a checkout of its own."""
    link_checkout(folder)
    (folder / "overlay.json").write_text(json.dumps(nested(OVERLAY | overlay)))
    command = ["-m", "zerogap", "rehearse", "--config", "config.yaml", "overlay.json"]
    return python(*command, cwd=folder, env=environment(folder))


def test_a_base_that_is_nowhere_is_one_clear_line(tmp_path):
    process = rehearse(tmp_path, **{"models.llama2": {"base": "nowhere", "revision": None}})
    assert process.returncode == 2
    assert process.stderr.startswith(
        "error: models.llama2.base: 'nowhere' is not a local folder, not in the hub's cache and "
        "cannot be downloaded ("
    )
    assert process.stderr.count("\n") == 1


def test_a_second_rehearsal_leaves_the_files_of_a_running_one(tmp_path):
    results = tmp_path / "results/paper_rehearsal"
    results.mkdir(parents=True)
    with exclusive(results, results.with_suffix(".lock")):
        process = rehearse(tmp_path)
    assert process.returncode == 2
    assert process.stderr.startswith("error: results/paper_rehearsal: another process is making")
    assert results.is_dir()


def test_what_preflight_refuses_fails_the_rehearsal(tmp_path):
    published_models.write_folder("qwen2", tmp_path / "published")
    (tmp_path / "published/chat_template.jinja").write_text("{{ messages }}")
    process = rehearse(tmp_path, **{"models.llama2": {"base": "published", "revision": None}})
    assert process.returncode == 1
    assert "set models.llama2.chat_template: ignore" in process.stdout + process.stderr
    assert process.stdout.endswith("the rehearsal failed\n")


def test_the_documentation_lists_every_architecture():
    section = (ROOT / "docs/extend.md").read_text().partition("### Tested architectures")[2]
    names = re.findall(r"`(\w+)`", section.partition("\n## ")[0])
    assert names == list(published_models.CONFIGS)


@pytest.fixture(scope="module", params=ARCHITECTURES)
def rehearsed(request, tmp_path_factory):
    """The name of an architecture, its rehearsal, and the folder with the results of its model."""
    name, folder = request.param, tmp_path_factory.mktemp(request.param)
    published_models.write_folder(name, folder / "published")
    model = {"family": FAMILIES.get(name, "auto"), "base": "published", "revision": None}
    process = rehearse(folder, **{"models.llama2": model})
    return SimpleNamespace(
        name=name, process=process, folder=folder / "results/paper_rehearsal/llama2"
    )


def test_every_architecture_passes_its_rehearsal(rehearsed):
    assert rehearsed.process.returncode == 0, rehearsed.process.stdout + rehearsed.process.stderr
    assert rehearsed.process.stdout.endswith("the rehearsal passed\n")


def test_every_job_that_decodes_or_trains_was_rehearsed(rehearsed):
    timings = rehearsed.folder.parent.glob("timings/llama2/*/*.tsv")
    assert {path.stem for path in timings} == {
        *("train_lora", "decode_greedy", "localise_neurons", "measure_recovery"),
        "rank_clean_tokens",
    }


def test_the_shared_prompt_cache_fits_all_but_hybrids(rehearsed):
    decoder = loading.decoder(loading.load(rehearsed.folder / "clean_gsm8k/model", "float32"))
    assert isinstance(decoder, SharedPromptDecoder) == (rehearsed.name not in HYBRIDS)


def test_every_strategy_decodes_differently(rehearsed):
    sampled = ("identity", "shortcut", "lne_blocking", "railcap")
    tables = [
        parquet.read(rehearsed.folder / f"gsm8k/cells/{name}/samples.parquet", "samples")
        for name in sampled
    ]
    token_ids = [tuple(map(tuple, table.token_ids)) for table in tables]
    assert len(set(token_ids)) == len(sampled)
