import pandas as pd

from helpers.tiny_models import tokenizer
from zerogap.engine.decoder import Prompt
from zerogap.sampling.inputs import JobInputs


def digest(**changes):
    row = {"question_id": "a", "gold": "1"} | changes
    prompts = [Prompt(row["question_id"], [1, 2, 3])]
    return JobInputs(tokenizer(), pd.DataFrame([row]), prompts).digest()


def test_work_on_other_gold_answers_is_not_resumed():
    """Kept responses carry their marks."""
    assert digest() == digest()
    assert digest() != digest(gold="2")
