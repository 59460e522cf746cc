import pandas as pd
import pytest

from helpers.job_inputs import BENCHMARK
from helpers.tiny_models import tokenizer
from zerogap.data.extraction import extraction_rule
from zerogap.engine.decoder import Prompt, Response, SamplingParams
from zerogap.errors import InputError
from zerogap.sampling import responses
from zerogap.sampling.responses import JobInputs, decoding_params, recorded
from zerogap.sampling.tables import solve_counts

TOKENIZER = tokenizer()
EXEMPLARS = [{"question": "1 + 1?", "target": "The answer is 2."}]
QUESTIONS = pd.DataFrame({"question_id": ["a", "b"], "question": ["2?", "three?"]})


def inputs(words=TOKENIZER, rule="numeric", gold="4"):
    questions = pd.DataFrame([{"question_id": "a", "gold": gold}])
    return JobInputs(words, questions, [Prompt("a", [1, 2, 3])], [256], extraction_rule(rule))


def test_a_prompt_is_the_exemplars_and_the_question():
    prompts = responses.few_shot_prompts(QUESTIONS, EXEMPLARS, TOKENIZER, 256, 10)
    assert [prompt.question_id for prompt in prompts] == ["a", "b"]
    assert TOKENIZER.decode(prompts[1].token_ids) == (
        "Q: 1 + 1?\nA: The answer is 2.\n\nQ: three?\nA:"
    )


def test_a_prompt_that_leaves_no_room_for_new_tokens_is_an_error():
    longest = responses.few_shot_prompts(QUESTIONS, EXEMPLARS, TOKENIZER, 256, 10)[1].token_ids
    responses.few_shot_prompts(QUESTIONS, EXEMPLARS, TOKENIZER, len(longest) + 10, 10)
    with pytest.raises(InputError, match=r"question b: .*context"):
        responses.few_shot_prompts(QUESTIONS, EXEMPLARS, TOKENIZER, len(longest) + 9, 10)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (["[THINK]", "[/THINK]", "[CONTROL]"], "[THINK]It is 5.[/THINK][CONTROL]It is 4."),
        (["<think>", "</think>"], "<think>It is 5.</think>It is 4."),
        (["◁think▷", "◁/think▷"], "◁think▷It is 5.◁/think▷It is 4."),
        (
            ["<|channel|>", "<|message|>", "<|start|>"],
            "<|channel|>analysis<|message|>It is 5.<|start|><|channel|>final<|message|>It is 4.",
        ),
        (["<|channel>", "<channel|>"], "<|channel>thought It is 5.<channel|>It is 4."),
    ],
)
@pytest.mark.parametrize(("finished", "answer"), [(True, "4"), (False, None)])
def test_thinking_between_special_tokens_is_not_graded(tokens, text, finished, answer):
    marked = tokenizer()
    marked.add_special_tokens({"additional_special_tokens": tokens})
    ids = marked(text if finished else text[: text.index("5.") + 2])["input_ids"]
    asked = inputs(marked, "thinking/numeric")
    rows = responses.scored_responses(asked, 0, [Response(ids, "length")], [])
    assert rows[0]["answer"] == answer
    assert "[CONTROL]" not in rows[0]["text"]


def test_responses_are_cut_scored_and_counted():
    texts = [
        " So the answer is 4.<filler_1> The answer is 4.\n\nQ: what",
        " The answer is 5.",
        " no idea",
    ]
    drawn = [Response(TOKENIZER(text)["input_ids"], "stop") for text in texts]
    table = pd.DataFrame(responses.scored_responses(inputs(), 0, drawn, ["what", "Q:"]))
    assert table.text[0] == "So the answer is 4. The answer is 4."
    assert table.correct.tolist() == [True, False, False]
    assert table.answer.tolist()[:2] == ["4", "5"]
    questions = pd.DataFrame({"question_id": ["b", "a"], "leaked": [False, True]})
    counts = solve_counts(table[::-1], questions)  # the first response has the lowest sample id
    assert counts.question_id.tolist() == ["b", "a"]
    assert counts.n_correct.tolist() == [0, 1]
    assert counts.n_samples.tolist() == [0, 3]
    assert counts.first_correct.tolist() == [False, True]
    assert counts.leaked.tolist() == [False, True]


def test_a_digest_of_prompts_includes_the_gold_answers():
    """Kept responses carry their marks."""
    assert inputs().digest() == inputs().digest()
    assert inputs().digest() != inputs(gold="2").digest()


SAMPLING = {
    "num_samples": 3, "temperature": 0.6, "top_p": 0.9, "max_new_tokens": 7, "dtype": "float32",
    "batch_size": 5, "batch_invariant": True,
}  # fmt: skip


def test_every_value_that_changes_a_response_reaches_the_decoding_loop():
    every_job = {"max_new_tokens": 7, "stop": ["Q:"], "batch_size": 5, "batch_invariant": True}
    draws = {"seed": 4, "stream": "clean-batch1"}
    benchmark = BENCHMARK | {"stop": ("Q:",)}
    assert decoding_params(SAMPLING, benchmark) == SamplingParams(temperature=0, **every_job)
    assert decoding_params(SAMPLING, benchmark, **draws) == SamplingParams(
        num_samples=3, temperature=0.6, top_p=0.9, **every_job, **draws
    )


def test_a_table_records_everything_but_the_batch_size():
    table = recorded(SAMPLING, BENCHMARK, {"run": "mine"}, seed=3)
    values = {name: value for name, value in SAMPLING.items() if name != "batch_size"}
    assert table == {"run": "mine", **BENCHMARK, "sampling": values, "seed": 3}
