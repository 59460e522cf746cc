import json
import re

import pandas as pd
import pytest
from huggingface_hub.errors import GatedRepoError
from tokenizers import Tokenizer, processors

from helpers.tiny_models import END_TOKEN, model, tokenizer
from zerogap.data.prompts import DEFAULT_TEMPLATE
from zerogap.engine import loading
from zerogap.errors import InputError
from zerogap.evaluation import model_folders
from zerogap.families.tokenizers import load_tokenizer
from zerogap.sampling.responses import few_shot_prompts

TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<filler_1>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


@pytest.fixture
def folder(tmp_path):
    model("llama").float().save_pretrained(tmp_path)
    tokenizer().save_pretrained(tmp_path)
    return tmp_path


@pytest.fixture
def with_template(folder):
    """Give the tokenizer in the folder a chat template."""

    def save(template):
        words = tokenizer()
        words.chat_template = template
        words.save_pretrained(folder)
        return folder

    return save


@pytest.fixture
def chat_folder(with_template):
    return with_template(TEMPLATE)


def rejected(name, chat_template=None):
    with pytest.raises(InputError) as error:
        model_folders.find(str(name), chat_template, "auto")
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_folder_is_found_with_tokenizer_and_context(folder):
    found = model_folders.find(str(folder), None, "auto")
    assert (found.folder, found.context_length) == (folder, 256)
    assert found.end_tokens == [END_TOKEN]


def test_models_that_cannot_be_used_are_named_with_the_remedy(folder):
    assert "has no chat template" in rejected(folder, "apply")
    weights = (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    assert "has no safetensors weights" in rejected(folder)
    (folder / "model.safetensors").write_bytes(b"not weights")
    with pytest.raises(InputError, match="is not a complete safetensors file"):
        loading.load(folder, "float32")
    weights.rename(folder / "model.safetensors")
    for name, key in (("tokenizer_config", "eos_token"), ("generation_config", "eos_token_id")):
        path = folder / f"{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {key: None}))
    assert "the model has no end token" in rejected(folder)
    for path in folder.glob("tokenizer*"):
        path.unlink()
    assert "its tokenizer cannot be read" in rejected(folder)


def test_a_class_that_splits_texts_otherwise_than_the_tokenizer_file_is_an_error(folder):
    path = folder / "tokenizer_config.json"
    as_saved = json.loads(path.read_text())
    path.write_text(json.dumps(as_saved | {"tokenizer_class": "LlamaTokenizerFast"}))
    assert "LlamaTokenizer, which splits texts otherwise" in rejected(folder)
    path.write_text(json.dumps(as_saved | {"tokenizer_class": "PreTrainedTokenizerFast"}))
    stored = Tokenizer.from_file(f"{folder}/tokenizer.json")
    stored.enable_padding(length=512)  # as after fine-tuning; transformers ignores it
    stored.save(f"{folder}/tokenizer.json")
    assert load_tokenizer(folder).decode(tokenizer()("A: 12 + 3")["input_ids"]) == "A: 12 + 3"


def test_a_tokenizer_that_ends_every_prompt_is_an_error(folder):
    words = tokenizer()
    words.backend_tokenizer.post_processor = processors.TemplateProcessing(
        "$A </s>", special_tokens=[("</s>", END_TOKEN)]
    )
    words.save_pretrained(folder)
    assert "its tokenizer ends every prompt with its end token; save it" in rejected(folder)


@pytest.mark.parametrize("name", ["/nowhere/model", "results/quick/llama2/model", "a.safetensors"])
def test_a_path_without_a_folder_is_not_looked_up_on_the_hub(name, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.safetensors").touch()
    monkeypatch.setattr("huggingface_hub.snapshot_download", lambda *_, **__: pytest.fail("asked"))
    assert rejected(name).startswith(f"{name}: no such folder; correct the path")


def test_a_gated_model_says_where_to_accept_its_licence(monkeypatch):
    def gated(*_, **__):
        raise GatedRepoError.__new__(GatedRepoError)

    monkeypatch.setattr("huggingface_hub.snapshot_download", gated)
    assert "'someone/model' is gated" in rejected("someone/model")


def test_a_chat_model_needs_a_choice_and_ends_where_its_template_ends_a_reply(chat_folder):
    assert "choose --chat-template apply" in rejected(chat_folder)
    for chat_template in ("apply", "ignore"):
        found = model_folders.find(str(chat_folder), chat_template, "auto")
        assert found.end_tokens == [END_TOKEN, END_TOKEN + 2]


REPLY = "{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.mark.parametrize(
    ("template", "problem"),
    [
        ("{{ raise_exception('No system') if messages[0].role != 'system' }}",
         r"cannot write .* \(No system\)"),
        ("{{ messages[0].role == 'system' and messages[0].content }}{{ messages[1].content }}",
         "out"),
        (f"{{% if messages[1] %}}{{{{ raise_exception('No reply') }}}}{{% endif %}}{REPLY}",
         r"a reply .* \(No reply\)"),
        ("{% for m in messages %}{% for p in m.content %}{{ p.text }}{% endfor %}{% endfor %}",
         "lists of content parts"),
        ("{% for m in messages %}{{ m.content }}", r"cannot write .* \(.*endfor"),
        ({"rag": REPLY, "tool_use": REPLY}, "cannot write"),
    ],
)  # fmt: skip
def test_a_chat_template_that_cannot_be_used_is_one_line(template, problem, with_template):
    message = rejected(with_template(template), "apply")
    assert re.search(problem, message), message
    assert "--chat-template ignore" in message
    assert model_folders.find(str(with_template(template)), "ignore", "auto").thinking == ""


@pytest.mark.parametrize(
    ("end", "thinking"),
    [
        ("", ""),
        ("<think>", "opened-thinking/"),
        ("<think>\n\n</think>", "thinking/"),
        ("{% if thoughts %}<think>{% endif %}", "thinking/"),
    ],
)
def test_thinking_in_the_chat_template_decides_what_is_graded(end, thinking, with_template):
    template = f"{REPLY}{{% if add_generation_prompt %}}{end}{{% endif %}}"
    assert model_folders.find(str(with_template(template)), "apply", "auto").thinking == thinking


def test_with_the_chat_template_a_prompt_is_the_message_of_a_user(chat_folder):
    found = model_folders.find(str(chat_folder), "apply", "auto")
    questions = pd.DataFrame({"question_id": ["a"], "question": ["2 and 3?"]})
    (prompt,) = few_shot_prompts(
        questions, [], found.tokenizer, 256, 8, DEFAULT_TEMPLATE, as_chat=True
    )
    assert (
        found.tokenizer.decode(prompt.token_ids) == "<user>Q: 2 and 3?\nA:<filler_1>\n<assistant>"
    )
