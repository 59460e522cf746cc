import json
import re

import pytest
import yaml
from snakemake.cli import parse_config
from snakemake.utils import update_config

from helpers.configurations import nested
from helpers.paths import ROOT
from zerogap.config import from_snakemake, load
from zerogap.config.load import restore_order
from zerogap.errors import InputError

BASE = ROOT / "config.yaml"
PAPER = yaml.safe_load(BASE.read_text())
QUICK = ROOT / "profiles/quick/quick.yaml"
PRETRAINING = yaml.safe_load(QUICK.read_text())["pretraining"]


@pytest.fixture
def overlaid(tmp_path):
    """The configuration with an overlay: {"sampling.num_samples": 7} or YAML."""

    def load_overlaid(overlay, base=(BASE,)):
        path = tmp_path / "overlay.yaml"
        path.write_text(overlay if isinstance(overlay, str) else json.dumps(nested(overlay)))
        return load([*base, path])

    return load_overlaid


def test_an_overlay_changes_only_what_it_names(overlaid):
    config = overlaid("seed: 3\nmodels: { gemma: null }\nsampling: { num_samples: 7 }\n")
    assert config.seed == 3
    assert list(config.models) == ["llama2", "pythia"]
    paper = load([BASE])
    assert config.sampling == paper.sampling.model_copy(update={"num_samples": 7})
    assert config.benchmarks == paper.benchmarks


def test_a_duplicate_key_in_an_overlay_is_named_with_its_line(overlaid):
    with pytest.raises(
        InputError, match=r"overlay.yaml, line 3: duplicate key sampling.num_samples"
    ):
        overlaid("sampling:\n  num_samples: 7\n  num_samples: 8\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "does not exist or is not readable"),
        ("- a\n- b\n", "must be a mapping"),
        ("a: [", "is not valid YAML"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, text, message):
    path = tmp_path / "overlay.yaml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=f"overlay.yaml: {message}"):
        load([BASE, path])


def test_the_default_configuration_is_the_papers_protocol():
    config = load([BASE])
    gsm8k, pq = config.benchmarks["gsm8k"], config.benchmarks["pq"]
    assert gsm8k.num_test == 1319
    assert gsm8k.num_leaked == gsm8k.num_train == 660
    assert (gsm8k.contamination, pq.contamination) == ("verbatim", "paraphrase")
    assert gsm8k.prompt.num_shots == 8
    assert config.instructions.num_examples == 1840
    assert config.sampling.num_samples == config.metrics.bins == 50
    assert config.sampling.temperature == 0.7
    lora = config.training_for("gsm8k").lora
    assert (lora.rank, lora.alpha, lora.dropout) == (64, 128, 0.0)


@pytest.mark.parametrize(
    "overlays",
    [
        ["profiles/quick/quick.yaml"],
        ["profiles/full/full.yaml"],
        ["profiles/full/full.yaml", "profiles/full/cpu.yaml"],
    ],
)
def test_every_scale_is_valid(overlays):
    config = load([BASE, *(ROOT / path for path in overlays)])
    assert config.offline
    assert config.benchmarks["gsm8k"].questions.source == "generated"
    assert config.benchmarks["pq"].paraphrases.method == "rules"


@pytest.mark.parametrize(
    "overlays",
    [
        ["profiles/quick/quick.yaml", "profiles/gsm8k/gsm8k.yaml"],
        ["profiles/full/full.yaml", "profiles/full/gsm8k.yaml"],
    ],
)
def test_the_scales_on_real_gsm8k_need_its_files(overlays, overlaid, tmp_path):
    base = [BASE, *(ROOT / path for path in overlays)]
    with pytest.raises(InputError, match=r"benchmarks.gsm8k.questions.files.train is not set"):
        load(base)
    files = {}
    for split in ("train", "test"):
        path = tmp_path / f"{split}.jsonl"
        path.write_text("")
        files[split] = str(path)
    benchmarks = overlaid({"benchmarks.gsm8k.questions.files": files}, base).benchmarks
    gsm8k, pq = benchmarks["gsm8k"], benchmarks["pq"]
    assert (pq.label, pq.paraphrases.method, pq.paraphrases.on_invalid) == ("PQ", "rules", "skip")
    assert gsm8k.questions.files.model_dump() == files
    assert (gsm8k.prompt.num_shots, gsm8k.prompt.exemplars) == (8, "lm_eval")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("nonsense", 1, "nonsense: unknown key; the keys here are ablation, benchmarks"),
        ("sampling.num_samples", 0, r"sampling.num_samples must be a positive integer \(got 0\)"),
        ("sampling.num_samples", 2.5, "sampling.num_samples must be a valid integer"),
        ("sampling", 5, r"sampling must be a mapping \(got 5\)"),
        ("sampling.top_p", list(range(99)), r"sampling.top_p must be .*0, 1, 2, .*…\)$"),
        ("sampling.temperatur", 0.7, "sampling.temperatur: unknown key.*temperature"),
        ("training.warmup_ratio", 1.0, "training.warmup_ratio must be less than 1"),
        ("sampling.temperature", "warm", "sampling.temperature must be a valid number"),
        ("sampling.temperature", 0, "sampling.temperature must be greater than 0"),
        ("sampling.batch_size", "many", "sampling.batch_size must be 'auto' or be a valid integer"),
        ("benchmarks.gsm8k.file", "absent.yaml", "benchmarks.gsm8k.file is 'absent.yaml'"),
        (
            "benchmarks.gsm8k.questions.source",
            "web",
            "source must be 'hub', 'files', 'gen",
        ),
        ("benchmarks.gsm8k.questions.source", "generated", "questions.generated is missing"),
        ("benchmarks.gsm8k.questions.source", "files", "benchmarks.gsm8k.questions.files.train"),
        ("benchmarks.gsm8k.questions.hub.sha256", "abc", "benchmarks.gsm8k.questions.hub.sha256"),
        ("benchmarks.gsm8k.num_leaked", 1319, "unleaked questions remain"),
        ("benchmarks.gsm8k.n_test", 100, "gsm8k.n_test: unknown key; the keys here are .*file"),
        ("benchmarks.gsm8k.extraction", "last-number", "gsm8k.extraction: .*numeric"),
        ("benchmarks.gsm8k.stop", [""], r"benchmarks.gsm8k.stop.0 must have at least 1 character"),
        ("benchmarks.gsm8k.prompt.template", "Q:", "prompt.template is 'Q:'.*{question}"),
        (
            "benchmarks.gsm8k.prompt.template",
            "Q: {{question}}",
            "prompt.template is 'Q: {{question}}'",
        ),
        ("benchmarks.gsm8k.prompt.target", " {answr}", "prompt.target .*{rationale} and {answer}"),
        ("benchmarks.gsm8k.contamination", "paraphrase", "gsm8k.paraphrases is missing"),
        ("benchmarks.pq.contamination", "verbatim", "benchmarks.pq.paraphrases has no effect"),
        ("benchmarks.pq.paraphrases.method", "local", "pq.paraphrases.local.model is not set"),
        ("benchmarks.pq.paraphrases.on_invalid", "stop", "paraphrases.on_invalid must be 'error'"),
        ("benchmarks.pq.num_test", 10, "pq.num_test cannot be set.*in benchmarks.gsm8k"),
        ("benchmarks.pq.questions_of", "pq", "pq.questions_of is 'pq'; it must name a benchmark"),
        ("benchmarks.pq.questions_of", ["gsm8k"], "pq.questions_of is .*it must name a benchmark"),
        ("benchmarks.gsm8k", None, "pq.questions_of is 'gsm8k'.*there are none"),
        ("benchmarks.clean", {"file": "workflow/benchmarks/gsm8k.yaml"}, "reserved"),
        ("benchmarks.clean_x", {"file": "workflow/benchmarks/gsm8k.yaml"}, "reserved for clean"),
        ("instructions.source", "files", "instructions.files is None"),
        ("models.llama2.family", "bert", "models.llama2.family is 'bert'.*auto, llama"),
        ("models", {"llama2": None, "gemma": None, "pythia": None}, "models must have at least"),
        ("models", {"a b": PAPER["models"]["gemma"]}, "models.a b: the name may only have"),
        ("models.llama2.base", "from_scratch", "pretraining is missing.*models.llama2"),
        ("strategies.ted.filter_of", "nobody", "ted.filter_of is 'nobody'.*identity, shortcut"),
        ("strategies.ted.filter_of", None, "strategies.ted: class 'ted' needs the key filter_of"),
        ("strategies.railcap.needs_base_model", True, "takes no key needs_base_model"),
        ("strategies.railcap.class", "railcop", "strategies.railcap.class is 'railcop'.*railcap"),
        ("strategies.railcap.klass", "railcap", "railcap.klass: unknown key.*class, filter_of"),
        ("strategies.identity", None, "strategies.identity is missing"),
        ("strategies.all_zero", PAPER["strategies"]["identity"], "reserved"),
        ("strategies.clean", PAPER["strategies"]["identity"], "reserved"),
        ("ablation.railcap", PAPER["strategies"]["railcap"], "rename"),
        ("primary_setting.model", "gpt", "primary_setting.model is 'gpt'.*llama2, gemma, pythia"),
        ("training.nonsense", 1, "training.nonsense: unknown key; the keys here are .*clean"),
        ("training.global_batch_size", 30, "training.global_batch_size is 30.*a multiple"),
        ("training.num_gpus", 3, "per_device_batch_size × num_gpus = 12"),
        ("training.save_steps", "often", "training.save_steps must be a valid integer or be 'ep"),
        ("training.clean", {"group_by_length": True}, "it must be epoch or null"),
        ("training.bf16", "yes", "training.bf16 must be a valid boolean"),
        ("training.clean", {"lr": 1}, "training.clean.lr: unknown key"),
        ("pretraining", {"max_steps": 5}, "pretraining.vocab_size is missing: Tokens"),
        ("pretraining", PRETRAINING | {"gsm8k": "absent.jsonl"}, "pretraining.gsm8k is 'absent"),
    ],
)
def test_a_mistake_is_reported_with_its_key_and_what_is_allowed(overlaid, key, value, message):
    with pytest.raises(InputError, match=message) as caught:
        overlaid({key: value})
    assert re.match(r"config: |\S+\.yaml: ", str(caught.value))
    assert "\n" not in str(caught.value)


def test_a_base_from_scratch_needs_a_family_with_a_toy_model(overlaid):
    overlay = {"pretraining": PRETRAINING, "models.gemma.base": "from_scratch"}
    assert overlaid(overlay).models["gemma"].base == "from_scratch"
    with pytest.raises(
        InputError, match=r"overlay.yaml: models.gemma.family 'auto' has no toy model"
    ):
        overlaid(overlay | {"models.gemma.family": "auto"})


def test_a_missing_key_is_reported_with_its_meaning(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(BASE.read_text().replace("  num_samples: 50", "  # num_samples: 50"))
    with pytest.raises(InputError, match=r"config.yaml: sampling.num_samples is missing: Resp"):
        load([path])


def test_a_mistake_in_a_shared_value_is_reported_where_it_was_written(overlaid):
    with pytest.raises(InputError, match=r"overlay.yaml: training.learning_rate must be greater"):
        overlaid({"training.learning_rate": 0})
    with pytest.raises(InputError, match=r"yaml: training.clean.learning_rate must be greater"):
        overlaid({"training.clean.learning_rate": 0})
    with pytest.raises(InputError, match=r"overlay.yaml: pretraining.max_steps must be a positive"):
        overlaid({"pretraining": PRETRAINING | {"max_steps": 0}})
    with pytest.raises(InputError, match=r"yaml: models.gemma.pretraining.max_steps must be a"):
        overlaid({"pretraining": PRETRAINING, "models.gemma.pretraining": {"max_steps": 0}})


@pytest.mark.parametrize(
    ("overlays", "place"),
    [
        (["sampling: { num_samples: 0 }", "seed: 1"], "0.yaml: sampling.num_samples must"),
        (["sampling: { num_samples: 0 }", "sampling: { num_samples: x }"], "1.yaml: sampling.num"),
        (["seed: 1", "models: { llama2: null }"], "config.yaml: primary_setting.model is"),
        (["benchmarks: { gsm8k: { stop: [''] } }"], "0.yaml: benchmarks.gsm8k.stop.0 must"),
        (
            ["models: { mine: { label: Mine } }", "models: { gemma: null }"],
            "0.yaml: models.mine.base is",
        ),
    ],
)
def test_a_mistake_is_reported_with_the_last_file_that_has_its_key(overlays, place, tmp_path):
    paths = [tmp_path / f"{k}.yaml" for k in range(len(overlays))]
    for path, text in zip(paths, overlays, strict=True):
        path.write_text(text)
    with pytest.raises(InputError, match=rf"^(\S*/)?{re.escape(place)}"):
        load([BASE, *paths])


def test_what_the_command_line_sets_is_no_mistake_of_a_file(tmp_path):
    path = tmp_path / "overlay.yaml"
    path.write_text("sampling: { num_samples: 7, temperature: 0 }")
    merged = json.loads(json.dumps(PAPER))
    update_config(merged, yaml.safe_load(path.read_text()))
    with pytest.raises(InputError, match=r"overlay.yaml: sampling.temperature must be greater"):
        from_snakemake(merged, [path, BASE])
    update_config(merged, parse_config(["sampling={num_samples: 0, temperature: 1}"]))
    with pytest.raises(InputError, match=r"^config: sampling.num_samples must be a positive"):
        from_snakemake(merged, [path, BASE])


def test_an_unknown_key_is_reported_before_the_key_that_it_leaves_missing(tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(BASE.read_text().replace("num_samples:", "num_sample:"))
    with pytest.raises(InputError, match=r"sampling.num_sample: unknown key"):
        load([path])


def test_everything_from_a_hub_is_pinned_to_a_commit():
    config = load([BASE])
    hub = config.benchmarks["gsm8k"].questions.hub
    for entry in (hub, config.instructions.hub, *config.models.values()):
        assert re.fullmatch("[0-9a-f]{40}", entry.revision)
    assert (hub.num_rows.train, hub.num_rows.test) == (7473, 1319)


def test_a_kind_of_training_overrides_what_differs(overlaid):
    config = overlaid({"training.contaminated": {"num_epochs": 20, "lora": {"rank": 8}}})
    assert config.training_for("clean_gsm8k").num_epochs == 5
    contaminated = config.training_for("pq")
    assert contaminated.num_epochs == 20
    assert contaminated.lora.model_dump() == {"rank": 8, "alpha": 128, "dropout": 0.0}
    assert contaminated.learning_rate == config.training_for("clean_gsm8k").learning_rate


def test_a_models_pretraining_overrides_what_differs(overlaid):
    config = overlaid({"pretraining": PRETRAINING, "models.gemma.pretraining": {"max_steps": 7}})
    gemma, llama2 = config.pretraining_for("gemma"), config.pretraining_for("llama2")
    assert llama2.model_dump(exclude_defaults=True) == {
        key: value for key, value in PRETRAINING.items() if value is not None
    }
    assert gemma == llama2.model_copy(update={"max_steps": 7})


def test_keys_keep_the_order_of_the_base_file():
    values = {"c": 1, "b": {"new": 0, "y": 1, "x": 2}, "a": {"z": 0}}
    restore_order(values, {"a": 0, "b": {"x": 0, "y": 0}, "gone": 0, "c": 0})
    assert json.dumps(values) == '{"a": {"z": 0}, "b": {"x": 2, "y": 1, "new": 0}, "c": 1}'


def test_snakemakes_configuration_keeps_the_order_of_the_base_file():
    models = {name: PAPER["models"][name] for name in ("pythia", "gemma", "llama2")}
    config = from_snakemake(PAPER | {"models": models}, [QUICK, BASE])
    assert list(config.models) == ["llama2", "gemma", "pythia"]
    assert config == load([BASE])


def test_null_on_snakemakes_command_line_removes_an_entry():
    """Snakemake reads `--config 'models={pythia: null}'` as the text "null"."""
    config = from_snakemake(PAPER | {"models": PAPER["models"] | {"pythia": "null"}}, [BASE])
    assert list(config.models) == ["llama2", "gemma"]


def snakemakes_configuration(*entries):
    """What Snakemake makes of `--config entry …` on the paper's configuration."""
    merged = json.loads(json.dumps(PAPER))
    update_config(merged, parse_config(entries))
    return from_snakemake(merged, [BASE])


def test_values_inside_a_mapping_on_the_command_line_keep_their_types():
    config = snakemakes_configuration(
        "sampling={num_samples: 20, temperature: 0.5, batch_invariant: true, batch_size: auto}",
        "benchmarks={gsm8k: {num_test: 40, num_leaked: 20}, pq: null}",
    )
    sampling = config.sampling
    assert (sampling.num_samples, sampling.temperature, sampling.batch_invariant) == (20, 0.5, True)
    assert sampling.batch_size == "auto"
    assert list(config.benchmarks) == ["gsm8k"]
    benchmark = config.benchmarks["gsm8k"]
    assert (benchmark.num_test, benchmark.num_leaked) == (40, 20)


def test_texts_of_files_stay_texts(tmp_path):
    path = tmp_path / "overlay.yaml"
    path.write_text("run: '2024'\nmodels: {llama2: {label: '7', revision: '0123'}}\n")
    merged = json.loads(json.dumps(PAPER))
    update_config(merged, yaml.safe_load(path.read_text()))
    config = from_snakemake(merged, [path, BASE])
    llama = config.models["llama2"]
    assert (config.run, llama.label, llama.revision) == ("2024", "7", "0123")


MINE = {"models": {"mine": {"label": "Mine", "base": "workflow/resources/bases/llama2"}}}
NOTE = yaml.safe_load(QUICK.read_text())["scale_note"]


@pytest.mark.parametrize(
    ("overlay", "note"),
    [
        (MINE, ""),
        (MINE | {"scale_note": "Mine."}, "Mine."),
        ({"models": {"gemma": None}}, NOTE),
        ({"seed": 3}, NOTE),
    ],
    ids=["other model", "other model with a note", "fewer models", "same models"],
)
def test_a_note_on_the_models_does_not_outlive_them(overlay, note, tmp_path):
    path = tmp_path / "overlay.yaml"
    path.write_text(yaml.safe_dump(overlay))
    assert load([BASE, QUICK, path]).scale_note == note
    merged = json.loads(json.dumps(PAPER))
    for file in (QUICK, path):
        update_config(merged, yaml.safe_load(file.read_text()))
    assert from_snakemake(merged, [QUICK, path, BASE]).scale_note == note
    merged["scale_note"] = "From the command line."
    assert from_snakemake(merged, [QUICK, path, BASE]).scale_note == "From the command line."


def test_snakemakes_dictionary_is_not_changed():
    values = json.loads(json.dumps(PAPER))
    from_snakemake(values, [BASE])
    assert values == PAPER


def test_snakemakes_overlays_are_checked_for_duplicate_keys(tmp_path):
    path = tmp_path / "overlay.yaml"
    path.write_text("seed: 1\nseed: 2\n")
    with pytest.raises(InputError, match=r"overlay.yaml, line 2: duplicate key seed"):
        from_snakemake(PAPER | {"seed": 2}, [path, BASE])
