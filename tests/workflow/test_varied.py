"""The scale of the wider toy model: one language throughout, and the whole protocol planned."""

from helpers import dry_runs
from helpers.dry_runs import ROOT
from zerogap import config
from zerogap.data.prompts import exemplars

SCALE = config.load([ROOT / "config.yaml", ROOT / "profiles/varied/varied.yaml"])


def test_questions_instructions_and_pretraining_are_in_the_varied_language():
    generated = SCALE.benchmarks["gsm8k"].questions.generated
    assert generated is not None
    languages = {
        generated.language,
        SCALE.instructions.language,
        SCALE.pretraining_for("llama2").language,
    }
    assert languages == {"varied"}


def test_the_exemplars_end_in_their_answer():
    prompt = SCALE.benchmarks["gsm8k"].prompt
    for exemplar in exemplars(prompt.model_dump()["exemplars"], prompt.num_shots):
        rationale, answer = exemplar["target"].split(" The answer is ")
        assert answer.rstrip(".") in rationale


def test_one_model_goes_through_the_whole_protocol():
    plan = dry_runs.jobs("--profile", "profiles/varied", "--forceall")
    assert plan["train_lora"] == plan["decode_greedy"] == 3  # clean, and two contaminated
    assert plan["localise_neurons"] == 2
    assert plan["check_claims"] == plan["check_memorisation"] == 1
    assert not {"fetch_base", "pretrain_base"} & plan.keys()
