"""Which tokens end a response, and which keys of a generation config have no effect."""

import pytest
from transformers import GenerationConfig

import zerogap
from helpers.tiny_models import END_TOKEN, model, tokenizer
from zerogap.engine import generation_config

REPLY = "{% for m in messages %}<{{ m.role }}>{{ m.content }}<filler_1>\n{% endfor %}"
FILLER_1 = END_TOKEN + 2


def words(template=None, eos="<eos>"):
    made = tokenizer()
    made.chat_template, made.eos_token = template, eos
    return made


@pytest.mark.parametrize(
    ("configured", "template", "expected"),
    [
        (None, None, [END_TOKEN]),
        (END_TOKEN, None, [END_TOKEN]),
        (7, None, [7, END_TOKEN]),
        ([9, 7, END_TOKEN], None, [7, 9, END_TOKEN]),
        (7, REPLY, [7, END_TOKEN, FILLER_1]),
        (None, REPLY.replace("<filler_1>", "."), [END_TOKEN]),
        (None, "{{ messages[0].content }}", [END_TOKEN]),
        (None, "{{ raise_exception('no') }}", [END_TOKEN]),
        (None, {"rag": REPLY, "tool_use": REPLY}, [END_TOKEN]),
    ],
)
def test_end_tokens_are_those_of_tokenizer_config_and_chat_template(configured, template, expected):
    config = GenerationConfig(eos_token_id=configured)
    assert generation_config.end_tokens(words(template), config) == expected


def test_a_model_may_have_end_tokens_that_its_tokenizer_does_not_know():
    made = words(eos=None)
    assert generation_config.end_tokens(made, GenerationConfig(eos_token_id=[3])) == [3]
    assert generation_config.end_tokens(made, GenerationConfig()) == []


@pytest.mark.parametrize("in_file", [True, False])
def test_a_folder_has_the_generation_config_that_its_model_is_loaded_with(tmp_path, in_file):
    net = model("gemma4")
    net.generation_config.eos_token_id = [1, 106]
    net.save_pretrained(tmp_path)
    if not in_file:
        (tmp_path / "generation_config.json").unlink()
    expected = [1, 106] if in_file else net.config.eos_token_id
    assert generation_config.read(tmp_path).eos_token_id == expected


@pytest.mark.parametrize(
    ("keys", "named"),
    [
        ({"repetition_penalty": 1.1, "top_k": 20}, "repetition_penalty 1.1, top_k 20 of its"),
        ({"top_p": 0.9, "temperature": 0.6, "do_sample": True}, "model: top_p 0.9 of its"),
        ({"suppress_tokens": [3]}, "suppress_tokens [3] of its"),
        ({"repetition_penalty": 1.0, "top_k": 0, "suppress_tokens": []}, ""),
        ({"eos_token_id": [1, 2], "max_length": 4096, "use_cache": True}, ""),
    ],
)
def test_keys_without_effect_are_named_in_one_line(keys, named, capsys):
    generation_config.note_ignored(GenerationConfig(**keys), "model")
    note = capsys.readouterr().err
    assert named in note
    assert note.count("\n") == bool(named)


PROMPTS = ["Q: one\nA:", "Q: twenty-two\nA:"]


def draw(net, made, **options):
    options = {"num_samples": 20, "max_new_tokens": 30, "temperature": 2.0} | options
    return zerogap.sample(net, made, PROMPTS, **options)


@pytest.mark.parametrize("strategy", [None, zerogap.RailCap(n=1), zerogap.LNEBlocking()])
def test_every_response_ends_at_the_first_of_all_end_tokens(strategy):
    """Also greedy trajectories, which the strategies follow. The text is without the end token."""
    net, made = model("llama"), words(REPLY)
    before = draw(net, made, strategy=strategy)
    frequent = before.token_ids.explode().mode().tolist()[0]
    net.generation_config.eos_token_id = [frequent, END_TOKEN]
    table = draw(net, made, strategy=strategy)
    ends = {frequent, END_TOKEN, FILLER_1}
    columns = table.token_ids, table.finish_reason, table.text
    for tokens, reason, text in zip(*columns, strict=True):
        assert not ends & set(tokens[:-1])
        assert (tokens[-1] in ends) == (reason == "eos")
        if reason == "eos":
            assert text == made.decode(tokens[:-1], skip_special_tokens=True).strip()
    assert (table.finish_reason == "eos").sum() > (before.finish_reason == "eos").sum()
