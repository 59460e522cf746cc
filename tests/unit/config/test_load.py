"""From files and the command line to a configuration: overlays, shared values, order, types."""

from pathlib import Path

import pytest
import yaml
from snakemake.cli import parse_config

from helpers.configurations import PAPER, QUICK, overlaid
from helpers.paths import ROOT
from zerogap.config import from_snakemake, load
from zerogap.config.files import check_overlays
from zerogap.errors import InputError


def on_command_line(*entries):
    """What Snakemake's `--config entry …` makes of the paper's configuration."""
    return from_snakemake(PAPER, parse_config(entries))


def test_a_kind_of_training_overrides_what_differs():
    config = overlaid(PAPER, {"training.contaminated": {"num_epochs": 20, "lora": {"rank": 8}}})
    assert config.training_for("clean_gsm8k").num_epochs == 5
    contaminated = config.training_for("pq")
    assert contaminated.num_epochs == 20
    assert contaminated.lora.model_dump() == {"rank": 8, "alpha": 128, "dropout": 0.0}
    assert contaminated.learning_rate == config.training_for("clean_gsm8k").learning_rate


def test_the_order_is_that_of_the_base_file():
    config = overlaid(PAPER, {"models": {"pythia": {"revision": "x"}, "llama2": {"revision": "y"}}})
    assert list(config.models) == ["llama2", "gemma", "pythia"]
    assert list(on_command_line("models={pythia: {revision: x}}").models) == list(config.models)


def test_the_overlays_of_a_snakemake_run_come_before_its_own_configuration():
    assert from_snakemake([QUICK[1], QUICK[0]], {}) == load(QUICK)


def test_values_of_the_command_line_have_their_types():
    config = on_command_line(
        "sampling={num_samples: 20, temperature: 0.5, batch_invariant: true, batch_size: auto}",
        "benchmarks={gsm8k: {num_test: 40, num_leaked: 20}, pq: null}",
        "seed=3",
        "strategies={railcap: {parameters: {steps: [1, x]}}}",
    )
    sampling = config.sampling
    assert (sampling.num_samples, sampling.temperature, sampling.batch_invariant) == (20, 0.5, True)
    assert (sampling.batch_size, config.seed) == ("auto", 3)
    assert config.strategies["railcap"].parameters["steps"] == [1, "x"]
    assert list(config.benchmarks) == ["gsm8k"]
    benchmark = config.benchmarks["gsm8k"]
    assert (benchmark.num_test, benchmark.num_leaked) == (40, 20)


def test_texts_of_files_stay_texts():
    llama = {"label": "7", "revision": "0123"}
    config = overlaid(PAPER, {"run": "2024", "models.llama2": llama})
    model = config.models["llama2"]
    assert (config.run, model.label, model.revision) == ("2024", "7", "0123")


MINE = {"models.mine": {"label": "Mine", "base": "workflow/resources/bases/llama2"}}
NOTE = yaml.safe_load(QUICK[1].read_text())["scale_note"]


@pytest.mark.parametrize(
    ("overlay", "note"),
    [
        (MINE, ""),
        (MINE | {"scale_note": "Mine."}, "Mine."),
        ({"models.gemma": None, "seed": 3}, NOTE),
    ],
)
def test_a_note_on_the_models_does_not_outlive_them(overlay, note):
    assert overlaid(QUICK, overlay).scale_note == note
    assert load(QUICK, {"scale_note": "Of the command line."}).scale_note == "Of the command line."


def test_a_base_of_an_overlay_is_not_that_of_the_file_or_revision_before():
    folder = ROOT / "profiles/smollm2"
    smollm2 = [*PAPER, folder / "smollm2.yaml", folder / "gsm_symbolic.yaml"]
    model = overlaid(smollm2, {"models.smollm2.base": "/data/SmolLM2"}).models["smollm2"]
    assert (model.base, model.gguf, model.label) == ("/data/SmolLM2", None, "SmolLM2-135M")
    other = overlaid(PAPER, {"models.llama2.base": "NousResearch/Llama-2-7b-hf"}).models["llama2"]
    assert other.revision is None
    same = overlaid(PAPER, {"models.llama2.base": "meta-llama/Llama-2-7b-hf"}).models["llama2"]
    assert same.revision == load(PAPER).models["llama2"].revision


def test_a_value_for_all_trainings_must_not_be_that_of_a_file_before_for_both_kinds():
    with pytest.raises(InputError, match=r"training\.num_epochs has no effect: a file before sets"):
        overlaid(QUICK, {"training.num_epochs": 20})
    assert overlaid(QUICK, {"training.lora": {"rank": 2}}).training_for("gsm8k").lora.rank == 2
    training = {"num_epochs": 20, "clean": {"num_epochs": 4}, "contaminated": {"num_epochs": 5}}
    config = overlaid(QUICK, {"training": training})
    assert config.training_for("clean_toy_gsm8k").num_epochs == 4


def test_a_training_takes_the_gpus_of_its_device():
    cpu, gpu = (overlaid(PAPER, {"training.device": device}).training for device in ("cpu", "auto"))
    assert (cpu.clean.num_gpus_used, gpu.clean.num_gpus_used) == (0, 1)


BASE = "config.yaml"


@pytest.mark.parametrize(
    ("arguments", "variable"),
    [
        (["--profile", "profiles/quick"], None),
        (["--profile=profiles/quick", "table_main"], "profiles/slurm"),
        (["--profile", "profiles/quick/config.yaml"], None),
        (["--workflow-profile", "quick"], None),
        (["table_main"], "profiles/quick"),
    ],
)
def test_a_profile_without_its_scale_is_an_error_that_gives_the_option(
    arguments, variable, monkeypatch
):
    monkeypatch.chdir(ROOT)
    if variable:
        monkeypatch.setenv("SNAKEMAKE_PROFILE", variable)
    with pytest.raises(InputError, match=r"give both: --configfile \S+/quick.yaml mine\.yaml$"):
        check_overlays(arguments, [ROOT / "mine.yaml", BASE])
    check_overlays(arguments, [QUICK[1], ROOT / "mine.yaml", BASE])
    check_overlays(arguments, [Path("profiles/quick/quick.yaml"), BASE])


def test_a_workflow_profile_that_does_not_exist_is_an_error(monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(InputError, match=r"^--workflow-profile nowhere: no such folder"):
        check_overlays(["--profile", "slurm", "--workflow-profile", "nowhere"], [BASE])
    for profile in ("none", "profiles/slurm", "slurm"):
        check_overlays([f"--workflow-profile={profile}"], [BASE])


@pytest.mark.parametrize(
    ("profile", "files"),
    [
        ("profiles/smollm2", ["profiles/smollm2/smollm2.yaml", "profiles/smollm2/gsm8k.yaml"]),
        ("slurm", ["mine.yaml"]),
        ("elsewhere", []),
    ],
)
def test_further_overlays_and_profiles_without_any_are_accepted(profile, files, monkeypatch):
    monkeypatch.chdir(ROOT)
    check_overlays(["--profile", profile], [*(ROOT / file for file in files), BASE])
