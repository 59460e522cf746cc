import csv
import io
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap import config as configuration
from zerogap.cli import main
from zerogap.errors import InputError
from zerogap.pipeline import jobs, model_sizes, planning
from zerogap.pipeline.model_sizes import Size

QUICK = [ROOT / "config.yaml", ROOT / "profiles/quick/quick.yaml"]


@pytest.fixture(autouse=True)
def in_the_checkout(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture
def paper():
    return configuration.load([ROOT / "config.yaml"])


@pytest.fixture
def quick():
    return configuration.load(QUICK)


def sizes(config):
    return {model: planning.size(config, model) for model in config["models"]}


def stage(table, name, model=None):
    rows = table[(table.stage == name) & (True if model is None else table.model == model)]
    return rows[["jobs", "tokens", "hours", "bytes"]].sum()


def plan(capsys, *arguments):
    status = main(["plan", *map(str, arguments)])
    return status, *capsys.readouterr()


def test_overlays_are_joined_key_by_key(quick, paper, tmp_path):
    assert quick["decoding"]["samples"] == paper["decoding"]["samples"] == 50
    assert quick["decoding"]["dtype"] == "float32"
    (tmp_path / "one.yaml").write_text("models: { gemma: null, pythia: null }\nseed: 7\n")
    config = configuration.load([*QUICK, tmp_path / "one.yaml"])
    assert list(config["models"]) == ["llama2"]
    assert config["models"]["llama2"]["label"] == "Llama2"
    assert config["seed"] == 7


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "none.yaml: No such file"),
        ("a: [", "no YAML"),
        ("- a", "not a mapping"),
        ("nonsense: 1", "unknown key nonsense"),
    ],
)
def test_a_bad_configuration_is_one_line(tmp_path, capsys, text, said):
    path = tmp_path / "none.yaml"
    if text:
        path.write_text(text)
    status, out, err = plan(capsys, "--config", ROOT / "config.yaml", path)
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("error: ") and said in err


def test_the_papers_cells(paper):
    assert jobs.cells(paper, "gemma", "pq") == ["identity", "shortcut", "lne_blocking", "railcap"]
    assert len(jobs.cells(paper, "llama2", "gsm8k")) == 4 + 5
    assert jobs.cells(paper, "llama2", "clean") == ["batch1", "batch2"]
    assert jobs.filtered(paper, "llama2", "pq") == ["ted"]
    assert len(jobs.on_device(paper)) == len(set(jobs.on_device(paper))) == 9 + 9 + 6 + 1 + 35
    assert not jobs.localised(paper, "llama2", "clean")
    for entry in paper["strategies"].values():
        entry.pop("borrows", None)
    assert not any(job.rule == "neurons" for job in jobs.all_jobs(paper))


def test_shards_are_jobs_that_share_the_tokens(paper):
    whole = planning.plan(paper, sizes(paper))
    paper["decoding"]["shards"] = 8
    shared = planning.plan(paper, sizes(paper))
    name = "Samples of the strategies"
    assert stage(shared, name).jobs == 8 * stage(whole, name).jobs
    for column in ("tokens", "hours", "bytes"):
        assert stage(shared, name)[column] == pytest.approx(stage(whole, name)[column])
    assert stage(shared, "Shards merged").jobs == 29 + 6
    longest = [table[table.stage == name].longest.max() for table in (whole, shared)]
    assert longest[0] == pytest.approx(8 * longest[1])


def test_tokens_are_the_protocols_arithmetic(paper):
    paper["models"] = {"llama2": paper["models"]["llama2"]}
    text = planning.lengths(paper, "llama2", 3.0)
    found = planning.plan(paper, sizes(paper))
    examples = 660 * (text.shots + text.question + text.response) + 1840 * text.instruction
    assert stage(found, "LoRA training").tokens == pytest.approx(3 * 5 * examples)
    asked = text.shots + 1319 * text.question
    cell = asked + 1319 * 50 * text.response
    assert stage(found, "Samples of the clean model").tokens == pytest.approx(2 * cell)
    # Four strategies in two settings, the ablation's five in one; Shortcut runs a second model.
    assert stage(found, "Samples of the strategies").tokens == pytest.approx((13 + 2) * cell)
    assert stage(found, "Greedy trajectories").tokens == pytest.approx(
        3 * (asked + 1319 * text.response)
    )
    groups = 31 * math.ceil(11_008 / 512)
    passes = 2 * (1 + 2 * groups)
    read = 2 * 660 * (text.shots + text.question + text.response)
    decoded = passes * (text.shots + 100 * (text.question + text.response))
    assert stage(found, "Shortcut neurons").tokens == pytest.approx(2 * (read + decoded))


def test_a_response_ends_at_the_bound(paper):
    paper["decoding"]["max_new_tokens"] = 10
    assert planning.lengths(paper, "llama2", 3.0).response == 10


def test_lengths_are_measured_where_the_texts_are_here(quick, tmp_path):
    text = planning.lengths(quick, "llama2", characters_per_token=1000)
    assert 40 < text.response < 60  # the shipped models' responses have about 49
    rows = [{"question": "x" * 300, "answer": f"{'y' * 600}\n#### 7"}] * 1
    (tmp_path / "test.jsonl").write_text("\n".join(map(json.dumps, rows)))
    quick["data"] |= {"source": "files", "files": {"test": str(tmp_path / "test.jsonl")}}
    assert planning.lengths(quick, "llama2", 3.0).response == 96  # max_new_tokens
    assert planning.lengths(quick, "llama2", 3.0).question > 2 * text.question


def test_rates_are_scaled_by_parameters_unless_they_are_the_models_own():
    rates = planning.Rates(sampling={"": 1000, "mine": 50})
    assert rates.of("sampling", "mine", 10**12) == 50
    assert rates.of("sampling", "other", 14 * 10**9) == 500
    assert rates.of("training", "other", 7 * 10**9) == planning.DEFAULTS["training"]
    assert math.isnan(rates.of("sampling", "tiny", 10**6))


def test_hours_are_tokens_by_rate(paper):
    paper["models"] = {"llama2": paper["models"]["llama2"]}
    rates = {kind: {"llama2": 1000.0} for kind in planning.DEFAULTS}
    found = planning.plan(paper, sizes(paper), planning.Rates(**rates))
    assert found.hours.sum() == pytest.approx(found.tokens.sum() / 1000 / 3600)


def test_no_hours_are_invented_for_models_too_small_to_scale(quick, capsys):
    assert planning.plan(quick, sizes(quick)).hours.sum() == 0
    files = ["--config", *QUICK]
    assert "No hours for Llama2 (0.0012B), Gemma (0.0011B), Pyth" in plan(capsys, *files)[1]
    own = [f"{model}=1000" for model in quick["models"]]
    given = [part for kind in planning.DEFAULTS for part in (f"--{kind}", *own)]
    status, out, _ = plan(capsys, *files, *given, "--format", "json")
    stages = json.loads(out)["stages"]
    total = sum(row["tokens"] for row in stages)
    assert sum(row["hours"] for row in stages) == pytest.approx(total / 1000 / 3600)


def test_disk_is_bases_and_merged_models_in_the_main(paper):
    found = planning.plan(paper, sizes(paper))
    llama = model_sizes.KNOWN["meta-llama/Llama-2-7b-hf"]
    assert stage(found, "Base models", "llama2").bytes == llama.stored
    merged = 3 * 2 * llama.parameters
    assert merged < stage(found, "LoRA training", "llama2").bytes < 1.2 * merged


def test_the_size_of_a_folder_is_that_of_its_tensors(quick):
    from safetensors import safe_open

    for model, entry in quick["models"].items():
        found = planning.size(quick, model)
        path = Path(entry["base"], "model.safetensors")
        with safe_open(path, "numpy") as file:
            shapes = [file.get_slice(name).get_shape() for name in file.keys()]  # noqa: SIM118
        assert found.parameters == sum(map(math.prod, shapes))
        assert found.stored == 2 * found.parameters < path.stat().st_size
        feed_forward = quick["pretraining"] | entry.get("pretraining", {})
        assert len(found.widths) == quick["pretraining"]["layers"]
        assert feed_forward["feed_forward"] in found.widths


def test_the_size_of_a_base_to_be_pretrained_is_about_that_of_the_finished_one(quick):
    for model, entry in quick["models"].items():
        foreseen = model_sizes.from_scratch(
            entry["family"], configuration.pretraining(quick, model)
        )
        made = planning.size(quick, model)
        assert foreseen.parameters == pytest.approx(made.parameters, rel=0.1)
        assert len(foreseen.widths) == len(made.widths)


def test_a_model_that_nobody_knows_is_an_error_with_its_mend(monkeypatch):
    import huggingface_hub

    def offline(*arguments, **named):
        raise ConnectionError("no network\nat all")

    monkeypatch.setattr(huggingface_hub.HfApi, "get_safetensors_metadata", offline)
    with pytest.raises(InputError, match=r"some/model: the hub .*\(no network\).*give a folder"):
        model_sizes.on_hub("some/model", None, "llama")
    assert isinstance(model_sizes.on_hub("EleutherAI/pythia-12b", None, "gpt_neox"), Size)


def test_every_format_shows_the_same_plan(capsys):
    _, out, _ = plan(capsys, "--format", "json")
    stages = json.loads(out)["stages"]
    total = sum(row["jobs"] for row in stages)
    _, out, _ = plan(capsys, "--format", "csv")
    rows = {row["stage"]: row for row in csv.DictReader(io.StringIO(out))}
    assert int(rows["All"]["jobs"]) == total == len(jobs.all_jobs(configuration.load(QUICK[:1])))
    hours = float(rows["All"]["gpu_hours"])
    assert hours == pytest.approx(sum(row["hours"] for row in stages))
    by_stage = [float(r["gpu_hours"] or 0) for r in rows.values() if r["setting"] == "By stage"]
    assert sum(by_stage) == pytest.approx(hours)
    for form in ("table", "md"):
        status, out, err = plan(capsys, "--format", form)
        assert (status, err) == (0, "")
        assert f"{hours:.2f}" in out and f"{total}" in out
        assert "Llama2 (6.7B): training 3,116" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--sampling", "0"], "'0' is no number above 0"),
        (["--training", "llama2=fast"], "'fast' is no number above 0"),
        (["--characters-per-token", "nan"], "'nan' is no number above 0"),
    ],
)
def test_a_rate_must_be_a_rate(capsys, arguments, said):
    with pytest.raises(SystemExit, match="2"):
        main(["plan", *arguments])
    assert said in capsys.readouterr().err


def test_a_rate_must_be_of_one_of_the_models(capsys):
    status, out, err = plan(capsys, "--greedy", "nobody=3")
    assert (status, out) == (2, "")
    assert "--greedy: 'nobody' is no model of the configuration, which has llama2, gemma" in err


def test_no_torch_is_loaded():
    command = [sys.executable, "-X", "importtime", "-m", "zerogap", "plan"]
    done = subprocess.run(
        command, cwd=ROOT / "workflow", capture_output=True, text=True, check=True
    )
    imported = {line.rsplit("|", 1)[1].strip() for line in done.stderr.splitlines() if "|" in line}
    assert "zerogap.pipeline.planning" in imported
    assert not imported & {"torch", "transformers", "matplotlib", "lm_eval"}
