"""`zerogap evaluate` and `zerogap sample` on a toy base model and toy word problems."""

import html
import json
import shutil
import weakref

import pandas as pd
import pytest
import torch

from helpers.job_inputs import BENCHMARK, SAMPLING, stored_parts
from helpers.paths import ROOT
from helpers.response_files import json_lines
from helpers.tiny_models import model, tokenizer
from zerogap import precision
from zerogap.cli import main
from zerogap.engine import loading
from zerogap.evaluation import model_folders, model_run, question_sets
from zerogap.io import parquet
from zerogap.sampling import jobs
from zerogap.scoring import inputs

BASES = ROOT / "workflow/resources/bases"
BASE, GEMMA, PYTHIA = BASES / "llama2", BASES / "gemma", BASES / "pythia"
SMALL = ["--num-questions", 4, "--num-samples", 4, "--max-new-tokens", 40]
STRATEGIES = ("identity", "railcap", "lne_blocking", "ted")


def run(command, folder, *options, name=BASE, benchmark="toy_gsm8k"):
    words = [name, "--benchmark", benchmark, "--output", folder, *SMALL, *options]
    return main([command, *map(str, words)])


def rejected(capsys, folder, *options, command="evaluate", **arguments):
    assert run(command, folder, *options, **arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


def assert_the_same(name, contract, *folders):
    tables = [parquet.read(folder / f"{name}.parquet", contract) for folder in folders]
    pd.testing.assert_frame_equal(*tables)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """An evaluation with a clean model, which is another base."""
    folder = tmp_path_factory.mktemp("evaluated")
    assert run("evaluate", folder, "--clean", GEMMA, "--clean-batch2") == 0
    return folder


def test_every_response_is_kept(evaluated):
    for name in ("identity", "railcap", "lne_blocking", "clean", "clean_batch2"):
        table = parquet.read(evaluated / f"{name}.parquet", "samples")
        assert len(table) == 16
        assert table.correct.notna().all()
    greedy = parquet.read(evaluated / "greedy.parquet", "greedy")
    assert list(greedy.question_id) == list(table.question_id.unique())
    sampling = {
        name: parquet.provenance(evaluated / f"{name}.parquet")["sampling"]
        for name in ("greedy", "identity", "clean", "clean_batch2")
    }
    assert [sampling[name]["temperature"] for name in ("greedy", "identity")] == [0, 0.7]
    assert sampling["clean"]["stream"] != sampling["clean_batch2"]["stream"]


def test_the_responses_are_those_of_a_cell_of_the_workflow(evaluated, tmp_path):
    asked = question_sets.load("toy_gsm8k", 4, 0, None)
    questions = asked.questions.assign(rationale="", leaked=False, paraphrase=None)
    names = ("questions", "greedy", "railcap", "solve")
    files = {name: tmp_path / f"{name}.parquet" for name in names}
    parquet.write(files["questions"], questions, "questions", {})
    (tmp_path / "exemplars.json").write_text(json.dumps(asked.exemplars))
    shared = {
        "model": BASE,
        "questions": files["questions"],
        "exemplars": tmp_path / "exemplars.json",
        "sampling": SAMPLING | {"max_new_tokens": 40, "dtype": "bfloat16"},
        "benchmark": BENCHMARK | {"stop": asked.stop},
        "metadata": {},
    }
    jobs.decode_greedy(**shared, output=files["greedy"])
    jobs.sample_cell(
        **shared,
        greedy=files["greedy"],
        samples=files["railcap"],
        solve=files["solve"],
        strategy={"class": "railcap", "parameters": {"n": 4, "suppression": "cap"}},
        seed=0,
        stream="strategies",
    )
    assert_the_same("greedy", "greedy", evaluated, tmp_path)
    assert_the_same("railcap", "samples", evaluated, tmp_path)


@pytest.mark.parametrize("settings", [None, "[]", "{", '{"editor.fontSize": 12}'])
def test_a_folder_of_something_else_is_left_alone(tmp_path, capsys, settings):
    (tmp_path / "summary.md").write_text("mine")
    if settings is not None:
        (tmp_path / "settings.json").write_text(settings)
    assert run("evaluate", tmp_path) == 2
    assert "no settings.json of an evaluation; choose another --output" in capsys.readouterr().err
    assert (tmp_path / "summary.md").read_text() == "mine"


def test_the_output_may_be_in_the_models_folder_but_is_not_that(tmp_path, capsys, monkeypatch):
    shutil.copytree(BASE, tmp_path / "model")
    monkeypatch.chdir(tmp_path / "model")
    words = ["--benchmark", "toy_gsm8k", *map(str, SMALL)]
    assert main(["sample", ".", "--output", ".", *words]) == 2
    assert "--output: . is the model's folder; name another one" in capsys.readouterr().err
    for _ in range(2):  # the files there do not change what the model is known by
        assert main(["sample", ".", *words]) == 0
    assert (tmp_path / "model/model-toy_gsm8k/identity.parquet").is_file()


def test_the_files_for_a_reader_agree_with_the_responses(evaluated):
    questions = pd.read_csv(evaluated / "questions.csv").set_index("question_id")
    summary = json.loads((evaluated / "summary.json").read_text())
    for name in STRATEGIES:
        counts = inputs.load(evaluated / f"{name}.parquet").counts.set_index("question_id")
        expected = (counts.n_correct / counts.n_samples.clip(lower=1)).loc[questions.index]
        assert list(questions[name]) == pytest.approx(list(expected))
        assert summary["strategies"][name]["solve_mean"][0] == pytest.approx(expected.mean())
    page = (evaluated / "summary.md").read_text()
    assert page.startswith("## Report card: llama2 on toy_gsm8k\n")
    assert "noise floor" in page
    assert "### Verdict" in page
    assert summary["notes"]
    assert all(f"Note: {note}." in page for note in summary["notes"])
    assert {"sa_ppg", "s_delta_plus"} <= {row["metric"] for row in summary["metrics"]}
    assert "temperature 0.7" in page


def test_the_report_card_compares_the_model_and_its_references_with_controls(
    tmp_path, capsys, monkeypatch
):
    folder = tmp_path / "card"
    options = ["--num-questions", 20, "--strategies", "railcap", "--reference", GEMMA]
    assert run("evaluate", folder, *options) == 0
    printed = capsys.readouterr().out
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["verdict"][0] in " ".join(printed.split())
    assert (summary["controls"], summary["num_controls"]) == ("new questions", 20)
    means = {
        side: parquet.read(folder / side / "identity.parquet", "samples").correct.mean()
        for side in (".", "controls", "reference1", "reference1/controls")
    }
    own, reference = (
        means[model] - means[f"{model}/controls".removeprefix("./")]
        for model in (".", "reference1")
    )
    assert summary["inflation"][0] == pytest.approx(own - reference)
    assert set(summary["signals"]) == {
        "identity", "gold_likelihood", "min_k", "peakedness", "rouge_l", "drop_railcap",
    }  # fmt: skip
    questions = pd.read_csv(folder / "questions.csv")
    assert list(questions.question_id[questions.flagged]) == summary["flagged"]
    record = json.loads((folder / "every_eval_ever.json").read_text())
    results = {result["evaluation_result_id"]: result for result in record["evaluation_results"]}
    inflation = results["all/identity/inflation"]["score_details"]
    assert inflation["score"] == pytest.approx(summary["inflation"][0])
    page = (folder / "report.html").read_text()
    assert html.escape(summary["verdict"][0], quote=False).split(".")[0] in page
    monkeypatch.setattr(loading, "load", None)
    assert run("evaluate", folder, *options) == 0
    assert (folder / "report.html").read_text() == page
    others = tmp_path / "others.jsonl"
    entries = [{"question": f"How many are {n} and {n}?", "gold": 2 * n} for n in range(20)]
    others.write_text("".join(f"{json.dumps(entry)}\n" for entry in entries))
    capsys.readouterr()
    line = rejected(capsys, folder, *options, "--controls", others)
    assert "different settings (controls was new questions (" in line


def test_the_record_has_each_strategy_as_it_was_drawn(evaluated):
    summary = json.loads((evaluated / "summary.json").read_text())
    record = json.loads((evaluated / "every_eval_ever.json").read_text())
    results = {result["evaluation_result_id"]: result for result in record["evaluation_results"]}
    assert len(results) == len(record["evaluation_results"])
    for name in STRATEGIES:
        result = results[f"all/{name}/solve_mean"]
        solved = summary["strategies"][name]["solve_mean"][0]
        assert result["score_details"]["score"] == pytest.approx(solved)
        assert f"all/{name}/sa_ppg" in results
        drop = summary["strategies"][name]["drop"]
        assert (f"all/{name}/drop" in results) == (drop is not None) == (name != "identity")
        arguments = {"temperature": 0.7, "top_p": 1.0, "max_tokens": 40}
        assert result["generation_config"]["generation_args"] == arguments
        assert result["generation_config"]["additional_details"]["chat_template"] == "none"
    assert record["model_info"]["id"] == BASE.name
    assert record["model_info"]["additional_details"]["digest"]


def test_a_repeated_command_prints_the_same_without_loading_the_model(
    evaluated, capsys, monkeypatch
):
    first = (evaluated / "summary.md").read_text()
    monkeypatch.setattr(loading, "load", None)
    monkeypatch.chdir(BASE)  # the same folder by another name
    assert run("evaluate", evaluated, "--clean", f"{GEMMA}/", "--clean-batch2", name=".") == 0
    assert (evaluated / "summary.md").read_text() == first
    assert "Verdict" in capsys.readouterr().out


def test_other_settings_do_not_overwrite_the_responses(evaluated, capsys):
    before = (evaluated / "identity.parquet").read_bytes()
    assert "temperature was 0.7, now 0.9" in rejected(capsys, evaluated, "--temperature", 0.9)
    assert "num_questions was 4, now 5" in rejected(capsys, evaluated, "--num-questions", 5)
    assert (evaluated / "identity.parquet").read_bytes() == before


def test_a_cpu_that_is_slow_in_bfloat16_does_not_continue_its_responses(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(precision, "slowdown", lambda dtype: 0.5)
    assert run("sample", tmp_path) == 0
    assert parquet.provenance(tmp_path / "identity.parquet")["precision"] == "bfloat16"
    capsys.readouterr()
    monkeypatch.setattr(precision, "slowdown", lambda dtype: 2)
    for options in ((), ("--dtype", "bfloat16")):
        line = rejected(capsys, tmp_path, *options, "--strategies", "railcap", command="sample")
        assert "dtype was bfloat16, now float32" in line


def test_another_base_model_does_not_reuse_the_responses(tmp_path, capsys):
    """Also without neurons: a strategy from outside may need the base model alone."""
    for seed in (1, 2):
        model("llama", seed).save_pretrained(tmp_path / f"base{seed}")
    folder, options = tmp_path / "out", ["--strategies", "identity"]
    assert run("sample", folder, *options, "--base-model", tmp_path / "base1") == 0
    capsys.readouterr()
    other = rejected(capsys, folder, *options, "--base-model", tmp_path / "base2", command="sample")
    assert "contains responses made with different settings (base_model was" in other


def test_responses_under_another_strategy_of_the_same_name_are_not_taken(
    tmp_path, monkeypatch, capsys
):
    monkeypatch.syspath_prepend(tmp_path)
    for number in (1, 2):
        source = f"from zerogap import RailCap\n\n\nclass Mine(RailCap):\n    number = {number}\n"
        (tmp_path / f"mine_{number}.py").write_text(source)
    folder = tmp_path / "output"
    assert run("sample", folder, "--strategies", "mine_1:Mine") == 0
    before = (folder / "Mine.parquet").read_bytes()
    capsys.readouterr()
    line = rejected(capsys, folder, "--strategies", "mine_2:Mine", command="sample")
    assert f"{folder / 'Mine.parquet'}: was made by another version" in line
    assert (folder / "Mine.parquet").read_bytes() == before
    assert run("sample", folder, "--strategies", "mine_1:Mine,railcap") == 0


def test_files_of_other_questions_under_the_same_ids_are_not_compared(tmp_path, capsys):
    sums = [f"What is {k} + 1?" for k in range(4)]
    for name, asked in {"one": sums, "other": sums[::-1]}.items():
        rows = [{"question": text, "gold": "5"} for text in asked]
        file = json_lines(tmp_path / f"{name}.jsonl", rows)
        assert run("sample", tmp_path / name, benchmark=file) == 0
    files = [str(tmp_path / name / "identity.parquet") for name in ("one", "other")]
    capsys.readouterr()
    assert main(["compare", files[0], files[0]]) == 0
    assert main(["compare", *files]) == 2
    assert "asks other questions than" in capsys.readouterr().err


@pytest.mark.parametrize("done", [3, 6], ids=["in the likelihoods", "in the samples"])
def test_an_interrupted_command_resumes(done, tmp_path, monkeypatch, capsys):
    """Of four likelihoods, one part of greedy trajectories, and two of samples."""
    resumed, whole = tmp_path / "resumed", tmp_path / "whole"
    monkeypatch.setitem(model_run.SAMPLES_PER_CHUNK, "samples", 2 * 4)
    options = ["--strategies", "identity"]
    stored_parts(monkeypatch, at_most=done)
    assert run("evaluate", resumed, *options) == 130
    assert "repeat the command to resume" in capsys.readouterr().err
    assert not (resumed / "identity.parquet").exists()
    remaining = stored_parts(monkeypatch)
    assert run("evaluate", resumed, *options) == 0
    assert len(remaining) == 4 + 1 + 2 - done
    assert run("evaluate", whole, *options) == 0
    assert_the_same("likelihoods", "likelihoods", resumed, whole)
    assert_the_same("identity", "samples", resumed, whole)


def test_a_model_is_loaded_and_tried_once_and_freed_before_the_next(tmp_path, monkeypatch, capsys):
    """For the benchmark and its controls together. That there is no GPU is said once."""
    loading._warn_of_cpu.cache_clear()
    models, decoders, digests = [], [], []
    load, decoder, digest = loading.load, loading.decoder, model_folders.folder_digest

    def load_alone(*arguments):
        assert not [each for each in models if each() is not None]
        loaded = load(*arguments)
        models.append(weakref.ref(loaded))
        return loaded

    monkeypatch.setattr(loading, "load", load_alone)
    monkeypatch.setattr(loading, "decoder", lambda model: decoders.append(1) or decoder(model))
    monkeypatch.setattr(
        model_folders, "folder_digest", lambda folder: digests.append(folder) or digest(folder)
    )
    options = ["--num-questions", 20, "--reference", GEMMA, "--clean", PYTHIA]
    assert run("evaluate", tmp_path, *options, "--strategies", "railcap") == 0
    assert (len(models), len(decoders)) == (3, 3)
    assert sorted(digests) == sorted([BASE, GEMMA, PYTHIA])
    if not torch.cuda.is_available():
        assert capsys.readouterr().err.count("no GPU is visible") == 1


def test_bad_options_end_in_one_line_before_anything_is_decoded(tmp_path, capsys):
    copy = shutil.copytree(BASE, tmp_path / "copy")
    for message, *options in (
        ("shortcut needs the base model", "--strategies", "shortcut"),
        ("'none.parquet' does not exist", "--neurons", "none.parquet"),
        ("--temperature must be above 0", "--temperature", 0),
        ("num_samples: must be", "--num-samples", 0),
        ("--num-questions must be", "--num-questions", 0),
        ("--clean-batch2 needs --clean", "--clean-batch2"),
        (f"--clean: {copy} is the model itself", "--clean", copy),
        ("--reference needs controls", "--reference", BASE, "--controls", "none"),
        ("/nowhere: no such folder", "--num-questions", 20, "--reference", "/nowhere"),
        ("is the model itself, or named twice", "--num-questions", 20, "--reference", BASE),
    ):
        assert message in rejected(capsys, tmp_path / "out", *options)
    assert not (tmp_path / "out").exists()


def test_a_prompt_beyond_the_context_is_found_before_anything_is_decoded(tmp_path, capsys):
    model("llama").float().save_pretrained(tmp_path / "short")
    tokenizer().save_pretrained(tmp_path / "short")
    capsys.readouterr()  # progress of saving
    line = rejected(capsys, tmp_path / "out", name=tmp_path / "short")
    assert "exceeds the model's context of 256 tokens" in line
    assert not (tmp_path / "out").exists()


def test_a_model_that_cannot_be_loaded_leaves_no_files(tmp_path, capsys):
    model = shutil.copytree(BASE, tmp_path / "model")
    weights = next(model.glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1000])
    rejected(capsys, tmp_path / "out", name=str(model))
    assert not (tmp_path / "out").exists()
