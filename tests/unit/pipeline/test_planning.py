import math

import pytest

from helpers.paths import ROOT
from zerogap.families import published_size
from zerogap.pipeline import planning
from zerogap.pipeline.model_sizes import model_size
from zerogap.pipeline.rates import DEFAULT_RATES, REFERENCE_RATES, Rates
from zerogap.pipeline.text_lengths import text_lengths

pytestmark = pytest.mark.usefixtures("in_checkout")
ONE_MODEL = {"models": {"gemma": None, "pythia": None}}
LLAMA2 = "meta-llama/Llama-2-7b-hf"


def sizes(config):
    return {model: model_size(config, model) for model in config.models}


def plan_of(config, rates=REFERENCE_RATES):
    texts = planning.texts_by_owner(config, sizes(config))
    return planning.plan(config, sizes(config), texts, rates)


def stage(plan, name, model=None):
    rows = plan[(plan.stage == name) & (True if model is None else plan.model == model)]
    return rows[["jobs", "tokens", "hours", "bytes"]].sum()


def test_shards_are_jobs_that_share_the_tokens_of_a_cell(paper):
    whole, sharded = (plan_of(config) for config in (paper(), paper(sampling__num_shards=8)))
    name = planning.STRATEGY_SAMPLES
    assert stage(sharded, name).jobs == 8 * stage(whole, name).jobs
    for column in ("tokens", "hours", "bytes"):
        assert stage(sharded, name)[column] == pytest.approx(stage(whole, name)[column])
    merges = [stage(plan, "Merging of shards").jobs for plan in (whole, sharded)]
    assert merges == [6, 6 + 30 + 6]  # the localisation of the paper has shards too
    longest = [plan[plan.stage == name].longest_job.max() for plan in (whole, sharded)]
    assert longest[0] == pytest.approx(8 * longest[1])


def test_every_job_of_the_paper_stays_below_a_third_of_its_longest_time_limit(paper):
    config = paper()
    plan = plan_of(config)
    assert plan.longest_job.max() < config.max_runtime / 60 / 3


def test_tokens_follow_from_the_protocol(paper):
    config = paper(**ONE_MODEL, neuron_localisation__num_shards=1)
    text = text_lengths(config, "llama2", "gsm8k", 3.0)
    plan = plan_of(config)
    examples = 660 * (text.shots + text.question + text.response) + 1840 * text.instruction
    assert stage(plan, "LoRA training").tokens == pytest.approx(3 * 5 * examples)
    prompts = text.shots + 1319 * text.question
    cell = prompts + 1319 * 50 * text.response
    assert stage(plan, planning.CLEAN_SAMPLES).tokens == pytest.approx(2 * cell)
    # Four strategies in two settings, the ablation's six in one; Shortcut runs a second model.
    assert stage(plan, planning.STRATEGY_SAMPLES).tokens == pytest.approx((14 + 2) * cell)
    assert stage(plan, "Greedy trajectories").tokens == pytest.approx(
        3 * (prompts + 1319 * text.response)
    )
    ranks = 1319 * (text.shots + text.question + 10)  # every prompt is read whole
    assert stage(plan, "Token ranks").tokens == pytest.approx(ranks)
    forced = 1319 * 10 * (text.question + text.response)
    assert stage(plan, "Recovery").tokens == pytest.approx(text.shots + forced)
    groups = 31 * math.ceil(11_008 / 512)
    passes = 2 * (1 + groups + groups / 2)  # the base model's end at the patched layer
    scored = 2 * 660 * (text.shots + text.question + text.response)
    shots = (2 + 2 * groups + 1) * text.shots  # the base model reads them once
    decoded = shots + passes * 100 * (text.question + text.response)
    assert stage(plan, "Neuron localisation").tokens == pytest.approx(2 * (scored + decoded))


def test_a_second_benchmark_adds_its_own_questions_and_clean_model(paper):
    second = {"file": str(ROOT / "workflow/benchmarks/gsm8k.yaml"), "num_test": 100}
    second |= {"label": "Second", "num_leaked": 50, "num_train": 50}
    one, two = paper(**ONE_MODEL), paper(**ONE_MODEL, benchmarks__second=second)
    plans = [plan_of(config) for config in (one, two)]
    text = text_lengths(two, "llama2", "second", 3.0)
    cell = text.shots + 100 * text.question + 100 * 50 * text.response
    clean = [stage(plan, planning.CLEAN_SAMPLES) for plan in plans]
    assert [part.jobs for part in clean] == [2, 4]
    assert clean[1].tokens - clean[0].tokens == pytest.approx(2 * cell)
    strategies = [stage(plan, planning.STRATEGY_SAMPLES) for plan in plans]
    assert strategies[1].tokens - strategies[0].tokens == pytest.approx((4 + 1) * cell)


def test_hours_are_tokens_divided_by_the_rate(paper):
    config = paper(**ONE_MODEL)
    rates = {kind: {"llama2": 1000.0} for kind in DEFAULT_RATES}
    plan = plan_of(config, Rates(**rates))
    plan = plan[plan.stage != "Neuron localisation"]  # its time is that of its steps
    assert plan.hours.sum() == pytest.approx(plan.tokens.sum() / 1000 / 3600)
    assert set(plan[plan.hours > 0].rate) == {"stated"}


def test_a_model_too_small_to_scale_has_no_hours(quick):
    config = quick()
    plan = plan_of(config)
    assert plan.hours.sum() == 0
    assert set(plan.rate) == {""}


def test_each_stage_says_where_its_rate_comes_from(paper):
    config = paper()
    speeds = {("LoRA training", "llama2"): 2.0}
    rates = Rates(sampling={"gemma": 100.0}, speeds=speeds)
    plan = plan_of(config, rates).set_index(["stage", "model"])
    default = plan_of(config).set_index(["stage", "model"])
    assert plan.rate["LoRA training", "llama2"] == "measured"
    assert plan.rate["LoRA training", "gemma"] == "assumed"
    assert plan.rate["Strategy samples", "gemma"] == "stated"
    assert plan.rate["Base models", "gemma"] == ""  # takes no GPU hours
    training = ("LoRA training", "llama2")
    assert plan.hours[training] == pytest.approx(default.hours[training] / 2)


def test_disk_is_mostly_base_models_and_merged_models(paper):
    config = paper()
    plan = plan_of(config)
    llama = published_size(LLAMA2)
    assert stage(plan, "Base models", "llama2").bytes == llama.stored
    merged = 3 * 2 * llama.parameters
    assert merged < stage(plan, "LoRA training", "llama2").bytes < 1.2 * merged
    responses = stage(plan, planning.STRATEGY_SAMPLES)
    assert responses.bytes == pytest.approx(3 * responses.tokens)
