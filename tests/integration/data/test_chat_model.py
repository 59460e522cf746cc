"""Paraphrases by a chat model on this machine: a tiny model that has memorised two replies."""

import json

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import paraphrase_questions
from helpers.scripts import options
from zerogap.data.paraphrases.chat_models import local_chat_model
from zerogap.data.paraphrases.llm import SYSTEM_PROMPT, format_invalid, paraphrase_all
from zerogap.data.questions import Question, split_test_questions
from zerogap.errors import InputError
from zerogap.io import parquet

QUESTIONS = {
    "test-0000": "Tom had 7 red apples in a bag and ate 3 of them. How many are left?",
    "test-0001": "Ann bought 4 books at 9 dollars each. What did she pay in all?",
}
REPLIES = [
    "New Question: After eating 3 apples from his 7, what number does Tom still have?",
    "New Question: What did Ann pay?",  # loses its numbers
]
TEMPLATE = (
    "{% for message in messages %}<|{{ message.role }}|>{{ message.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
OPTIONS = {"dtype": "float32", "temperature": 0.05, "max_new_tokens": 40, "seed": 1}


def trained() -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
    """A model that has memorised the two replies, and its tokenizer."""
    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    special = ["<|end|>", "<|system|>", "<|user|>", "<|assistant|>"]
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([SYSTEM_PROMPT, *QUESTIONS.values(), *REPLIES] * 2, trainer)
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, eos_token="<|end|>")
    tokenizer.chat_template = TEMPLATE

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        eos_token_id=tokenizer.eos_token_id,
    )
    model = LlamaForCausalLM(config)
    texts = [
        tokenizer.apply_chat_template(
            [
                {"role": "system", "content": SYSTEM_PROMPT},
                {"role": "user", "content": question},
                {"role": "assistant", "content": reply},
            ],
            return_dict=True,
        )["input_ids"]
        for question, reply in zip(QUESTIONS.values(), REPLIES, strict=True)
    ]
    reply_id = tokenizer.convert_tokens_to_ids("<|assistant|>")
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(150):
        for ids in texts:
            start = ids.index(reply_id) + 1
            labels = torch.tensor([[-100] * start + ids[start:]])
            model(input_ids=torch.tensor([ids]), labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return model, tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("chat")
    for part in trained():
        part.save_pretrained(path)
    return path


def test_an_invalid_reply_is_requested_again_and_a_valid_one_kept(folder, tmp_path):
    ask = local_chat_model(str(folder), None, **OPTIONS)
    attempts = []

    def counted(messages, attempt):
        attempts.append(attempt)
        return ask(messages, attempt)

    journal = tmp_path / "journal.jsonl"
    paraphrases, invalid, _ = paraphrase_all(
        QUESTIONS, journal, counted, model="tiny", max_attempts=3
    )
    assert paraphrases == {"test-0000": REPLIES[0].removeprefix("New Question: ")}
    assert format_invalid(invalid) == "\n  test-0001: missing numbers: 4, 9"
    assert sorted(attempts) == [0, 0, 1, 2]
    (line,) = journal.read_text().splitlines()
    assert json.loads(line)["model"] == "tiny"
    attempts.clear()
    paraphrase_all(QUESTIONS, journal, counted, model="tiny", max_attempts=1)
    assert attempts == [0]  # the accepted reply is not requested again


def test_a_reply_depends_only_on_seed_question_and_attempt(folder):
    hot = OPTIONS | {"temperature": 3.0}
    ask, again, other = (
        local_chat_model(str(folder), None, **hot | {"seed": seed}) for seed in (1, 1, 2)
    )
    messages = [{"role": "user", "content": "How many?"}]
    first, second = ask(messages, 0), ask(messages, 1)
    assert (again(messages, 1), again(messages, 0)) == (second, first)
    assert len({first.text, second.text, other(messages, 0).text}) == 3
    assert first.input_tokens > 0
    assert 0 < first.output_tokens <= 40


def test_the_script_paraphrases_with_a_local_model(folder, tmp_path):
    rows = [Question(text, "Because.", "1") for text in [*QUESTIONS.values(), "Another one?"]]
    table = split_test_questions(rows, len(rows), 2, 1).assign(leaked=[True, True, False])
    parquet.write(tmp_path / "split.parquet", table, "questions", {})
    model = {key: value for key, value in OPTIONS.items() if key != "seed"}
    model |= {"model": str(folder), "revision": None, "max_attempts": 1}
    parameters = {"method": "local", "on_invalid": "skip", "options": model, "seed": 1}
    paths = {"questions": tmp_path / "split.parquet", "output": tmp_path / "out.jsonl"}
    paraphrase_questions.main(options(tmp_path, parameters, **paths))
    entries = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [entry["method"] for entry in entries] == ["local", "local"]
    assert {entry["question_id"]: bool(entry["paraphrase"]) for entry in entries} == {
        "test-0000": True,
        "test-0001": False,
    }


def test_an_unsuitable_model_is_an_error(folder, tmp_path):
    with pytest.raises(InputError, match="could not load"):
        local_chat_model(str(tmp_path / "none"), None, **OPTIONS)
    model, tokenizer = LlamaForCausalLM.from_pretrained(folder), PreTrainedTokenizerFast
    tokenizer = tokenizer.from_pretrained(folder)
    model.save_pretrained(tmp_path / "strict")
    tokenizer.chat_template = "{{ raise_exception('no system role') }}"
    tokenizer.save_pretrained(tmp_path / "strict")
    ask = local_chat_model(str(tmp_path / "strict"), None, **OPTIONS)
    with pytest.raises(InputError, match=r"rejects a system message .*no system role"):
        ask([{"role": "system", "content": "x"}], 0)
    tokenizer.chat_template = None
    (tmp_path / "strict/chat_template.jinja").unlink(missing_ok=True)
    tokenizer.save_pretrained(tmp_path / "strict")
    with pytest.raises(InputError, match="has no chat template"):
        local_chat_model(str(tmp_path / "strict"), None, **OPTIONS)
