"""Paraphrases by a chat model on this machine: tiny weights that have learnt two replies."""

import json

import pytest
import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import paraphrase_questions
from zerogap.data.gsm8k import Row
from zerogap.data.paraphrases.chat_model import chat_model
from zerogap.data.paraphrases.llm import SYSTEM_PROMPT, listed, rewrite
from zerogap.data.questions import questions
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


def learnt() -> tuple[LlamaForCausalLM, PreTrainedTokenizerFast]:
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
    begin = tokenizer.convert_tokens_to_ids("<|assistant|>")
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(150):
        for ids in texts:
            learn = ids.index(begin) + 1
            labels = torch.tensor([[-100] * learn + ids[learn:]])
            model(input_ids=torch.tensor([ids]), labels=labels).loss.backward()
        optimiser.step()
        optimiser.zero_grad()
    return model, tokenizer


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("chat")
    for part in learnt():
        part.save_pretrained(made)
    return made


def test_replies_are_checked_asked_again_and_kept(folder, tmp_path):
    ask = chat_model(str(folder), None, **OPTIONS)
    attempts = []

    def counted(messages, attempt):
        attempts.append(attempt)
        return ask(messages, attempt)

    journal = tmp_path / "journal.jsonl"
    found, invalid = rewrite(QUESTIONS, journal, counted, model="tiny", tries=3)
    assert found == {"test-0000": REPLIES[0].removeprefix("New Question: ")}
    assert listed(invalid) == "\n  test-0001: missing numbers: 4, 9"
    assert sorted(attempts) == [0, 0, 1, 2]
    (line,) = journal.read_text().splitlines()
    assert json.loads(line)["model"] == "tiny"
    attempts.clear()
    rewrite(QUESTIONS, journal, counted, model="tiny", tries=1)
    assert attempts == [0]  # the accepted reply is there


def test_a_reply_depends_on_seed_question_and_try_alone(folder):
    hot = OPTIONS | {"temperature": 3.0}
    ask, again, other = (
        chat_model(str(folder), None, **hot | {"seed": seed}) for seed in (1, 1, 2)
    )
    messages = [{"role": "user", "content": "How many?"}]
    first, second = ask(messages, 0), ask(messages, 1)
    assert (again(messages, 1), again(messages, 0)) == (second, first)
    assert len({first.text, second.text, other(messages, 0).text}) == 3
    assert first.tokens_in > 0 and 0 < first.tokens_out <= 40


def test_the_script_with_a_local_model(folder, tmp_path):
    rows = [Row(text, "Because.", "1") for text in [*QUESTIONS.values(), "Another one?"]]
    table = questions(rows, None, 2, 1).assign(leaked=[True, True, False])
    parquet.write(tmp_path / "split.parquet", table, "questions", {})
    method = {key: value for key, value in OPTIONS.items() if key != "seed"}
    method |= {"method": "local", "model": str(folder), "revision": None, "tries": 1}
    paraphrase_questions.main(
        ["--questions", f"{tmp_path}/split.parquet", "--seed", "1",
         "--output", f"{tmp_path}/out.jsonl",
         "--paraphrases", json.dumps(method | {"invalid": "leave_out"})]
    )  # fmt: skip
    made = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["method"] for one in made] == ["local", "local"]
    assert {one["question_id"]: bool(one["paraphrase"]) for one in made} == {
        "test-0000": True,
        "test-0001": False,
    }


def test_a_model_that_will_not_do(folder, tmp_path):
    with pytest.raises(InputError, match="cannot be loaded"):
        chat_model(str(tmp_path / "none"), None, **OPTIONS)
    model, tokenizer = LlamaForCausalLM.from_pretrained(folder), PreTrainedTokenizerFast
    tokenizer = tokenizer.from_pretrained(folder)
    model.save_pretrained(tmp_path / "strict")
    tokenizer.chat_template = "{{ raise_exception('no system role') }}"
    tokenizer.save_pretrained(tmp_path / "strict")
    ask = chat_model(str(tmp_path / "strict"), None, **OPTIONS)
    with pytest.raises(InputError, match="refuses a system message .*no system role"):
        ask([{"role": "system", "content": "x"}], 0)
    tokenizer.chat_template = None
    (tmp_path / "strict/chat_template.jinja").unlink(missing_ok=True)
    tokenizer.save_pretrained(tmp_path / "strict")
    with pytest.raises(InputError, match="has no chat template"):
        chat_model(str(tmp_path / "strict"), None, **OPTIONS)
