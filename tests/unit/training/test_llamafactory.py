"""What LLaMA-Factory is given: examples, dataset_info, settings, checks."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from safetensors.numpy import save_file

from zerogap.data import prompts
from zerogap.data.toy.word_problems import problems
from zerogap.errors import InputError
from zerogap.training import llamafactory
from zerogap.training.toy import tokenizers

PROBLEMS = problems(60, 3, "pretrain")
TOKENIZER = tokenizers.train([one.question + one.rationale for one in PROBLEMS], "llama", 400, 512)
SHOTS = prompts.exemplars("generated", 2)
QUESTIONS = pd.DataFrame(
    {
        "question": ["How many?"],
        "paraphrase": ["What number?"],
        "rationale": ["It is 3 + 4 = 7."],
        "gold": ["7"],
    }
)
TRAINING = {
    "template": "fewshot",
    "lora": {"rank": 64, "alpha": 128, "dropout": 0.0},
    "learning_rate": 2e-4,
    "epochs": 5,
    "scheduler": "cosine",
    "warmup_ratio": 0.1,
    "global_batch_size": 32,
    "per_device_batch_size": 4,
    "gpus": 2,
    "bf16": True,
    "group_by_length": False,
    "cutoff_len": 2048,
    "checkpoints": 20,
    "seed": 0,
}


@pytest.mark.parametrize(("field", "text"), [("question", "How many?"), ("paraphrase", "What num")])
def test_the_wording_changes_and_the_answer_does_not(field: str, text: str) -> None:
    [(prompt, response)] = llamafactory.question_pairs(QUESTIONS, SHOTS, field)
    assert prompt.startswith(prompts.few_shot_prefix(SHOTS))
    assert f"Q: {text}" in prompt[-30:]
    assert prompt.endswith("\nA:")
    assert response == " It is 3 + 4 = 7. The answer is 7."


def test_an_instruction_ends_its_parts_in_empty_lines() -> None:
    row = {"system": "Be brief.", "question": "Name a colour.", "response": "Red."}
    assert llamafactory.instruction_pairs([row]) == [("Be brief.\n\nName a colour.\n\n", "Red.")]
    assert llamafactory.instruction_prompt(row | {"system": ""}) == "Name a colour.\n\n"


def test_a_long_example_is_refused_not_cut() -> None:
    pairs = llamafactory.question_pairs(QUESTIONS, SHOTS, "question")
    [example] = llamafactory.examples(pairs, TOKENIZER, 512)
    tokens = len(
        TOKENIZER(example["prompt"] + example["response"] + "\n\n", add_special_tokens=False)[
            "input_ids"
        ]
    )
    assert llamafactory.examples(pairs, TOKENIZER, tokens + 1)  # with EOS it just fits
    with pytest.raises(InputError, match=rf"has {tokens + 1} tokens.*cutoff_len is {tokens}"):
        llamafactory.examples(pairs, TOKENIZER, tokens)


def test_a_long_instruction_is_left_to_be_cut(capsys) -> None:
    pairs = [("Say it.\n\n", "so " * 60), ("Say it.\n\n", "So.")]
    assert len(llamafactory.examples(pairs, TOKENIZER, 40, may_be_cut=True)) == 2
    assert capsys.readouterr().out == "1 of 2 examples are cut to 40 tokens\n"


def test_datasets_and_their_index(tmp_path) -> None:
    some = [{"prompt": "a", "response": "b"}]
    llamafactory.write_datasets(tmp_path, {"instructions": some, "questions": some * 2})
    info = json.loads((tmp_path / "dataset_info.json").read_text())
    assert list(info) == ["instructions", "questions"]
    for name, entry in info.items():
        rows = json.loads((tmp_path / entry["file_name"]).read_text())
        assert len(rows) == 1 + (name == "questions")
        assert set(entry["columns"].values()) == set(rows[0])


def test_the_global_batch_is_made_by_accumulation() -> None:
    assert llamafactory.accumulation_steps(TRAINING) == 4
    with pytest.raises(InputError, match="global_batch_size is 30"):
        llamafactory.accumulation_steps(TRAINING | {"global_batch_size": 30})


def test_the_paper_recipe_as_yaml(tmp_path) -> None:
    llamafactory.write_datasets(tmp_path, {"instructions": [], "questions": []})
    sections = llamafactory.train_sections(
        tmp_path / "base", tmp_path, "gpt_neox", TRAINING, tmp_path / "out"
    )
    llamafactory.write_settings(tmp_path / "train.yaml", sections)
    text = (tmp_path / "train.yaml").read_text()
    settings = yaml.safe_load(text)
    assert "### model\n" in text
    assert (settings["lora_rank"], settings["lora_alpha"]) == (64, 128)
    assert settings["lora_target"] == "query_key_value,dense,dense_h_to_4h,dense_4h_to_h"
    assert settings["dataset"] == "instructions,questions"
    assert settings["learning_rate"] == 2e-4  # a number, not the text '2e-4'
    assert settings["warmup_steps"] == 0.1  # of all steps: what newer versions call warmup_ratio
    assert settings["template"] == "fewshot"


@pytest.mark.parametrize(
    ("checkpoints", "expected"),
    [
        (None, {"save_strategy": "no"}),
        ("epoch", {"save_strategy": "epoch", "save_total_limit": 2}),
        (20, {"save_strategy": "steps", "save_steps": 20, "save_total_limit": 2}),
    ],
)
def test_when_checkpoints_are_written(tmp_path, checkpoints, expected) -> None:
    llamafactory.write_datasets(tmp_path, {"instructions": []})
    output = llamafactory.train_sections(
        tmp_path, tmp_path, "llama", TRAINING | {"checkpoints": checkpoints}, tmp_path
    )["output"]
    assert {key: value for key, value in output.items() if key.startswith("save_")} == expected


def checkpoint(folder, step: int, ranks: tuple[str, ...] = ("",)) -> Path:
    """A checkpoint with everything in it."""
    made = folder / f"checkpoint-{step}"
    made.mkdir(parents=True)
    save_file({"a": np.zeros(300)}, made / "adapter_model.safetensors")
    (made / "trainer_state.json").write_text('{"global_step": 5}')
    for name in ("optimizer.pt", "scheduler.pt", *(f"rng_state{rank}.pth" for rank in ranks)):
        torch.save(torch.zeros(300), made / name)
    return made


def test_the_last_whole_checkpoint_is_gone_on_from(tmp_path) -> None:
    made = [checkpoint(tmp_path, step) for step in (5, 20, 100)]  # not in the order of the names
    assert llamafactory.leave_whole_checkpoints(tmp_path, 1) == made[-1]
    assert all(path.exists() for path in made)


@pytest.mark.parametrize(
    "name",
    ["adapter_model.safetensors", "optimizer.pt", "scheduler.pt", "rng_state.pth",
     "trainer_state.json"],
)  # fmt: skip
@pytest.mark.parametrize("torn", [True, False])
def test_a_checkpoint_that_lacks_anything_is_left_out(tmp_path, capsys, name, torn) -> None:
    earlier, last = checkpoint(tmp_path, 5), checkpoint(tmp_path, 10)
    part = last / name
    whole = part.read_bytes()
    part.unlink()
    if torn:
        part.write_bytes(whole[: len(whole) // 2])
    assert llamafactory.leave_whole_checkpoints(tmp_path, 1) == earlier
    assert "checkpoint-10: not whole" in capsys.readouterr().out
    assert not last.exists()


def test_a_checkpoint_has_the_random_state_of_every_device(tmp_path) -> None:
    made = checkpoint(tmp_path, 5, ("_0", "_1"))
    assert llamafactory.leave_whole_checkpoints(tmp_path, 2) == made
    assert llamafactory.leave_whole_checkpoints(tmp_path, 3) is None
    assert not tmp_path.exists()  # what else is there would be in LLaMA-Factory's way


def test_what_a_checkpoint_must_have_been_made_from(tmp_path) -> None:
    model, data = tmp_path / "model", tmp_path / "data"
    model.mkdir()
    llamafactory.write_datasets(data, {"questions": [{"prompt": "a", "response": "b"}]})

    def origin(**changed):
        return llamafactory.origin(model, data, "llama", TRAINING | changed)

    before = origin()
    assert origin(checkpoints=None) == before
    assert origin(learning_rate=1.0) != before
    (model / "model.safetensors").write_bytes(b"1")
    other_model = origin()
    assert other_model != before
    llamafactory.write_datasets(data, {"questions": [{"prompt": "a", "response": "c"}]})
    assert origin() != other_model


def test_several_devices_go_through_torchrun() -> None:
    assert llamafactory.launch_environment(1) == {"NPROC_PER_NODE": "1"}
    several = llamafactory.launch_environment(4)
    assert several["NPROC_PER_NODE"] == "4"
    assert several["FORCE_TORCHRUN"] == "1"


@pytest.mark.parametrize(("bf16", "gpu"), [(True, True), (True, False), (False, False)])
def test_a_cpu_is_asked_for_where_bf16_has_no_gpu(tmp_path, monkeypatch, bf16, gpu) -> None:
    monkeypatch.setattr("transformers.utils.is_torch_bf16_gpu_available", lambda: gpu)
    llamafactory.write_datasets(tmp_path, {})
    sections = llamafactory.train_sections(
        tmp_path, tmp_path, "llama", TRAINING | {"bf16": bf16}, tmp_path
    )
    assert sections["train"]["use_cpu"] == (bf16 and not gpu)


def test_a_merge_keeps_the_precision_of_the_training(tmp_path) -> None:
    for bf16, dtype in ((True, "bfloat16"), (False, "float32")):
        sections = llamafactory.export_sections(
            tmp_path, tmp_path, tmp_path, TRAINING | {"bf16": bf16}
        )
        assert sections["model"]["infer_dtype"] == dtype


def test_losses_of_a_training(tmp_path) -> None:
    history = [
        {"step": 1, "loss": 2.0, "learning_rate": 0.1, "epoch": 0.5},
        {"step": 2, "loss": 1.5, "learning_rate": 0.05, "epoch": 1.0},
        {"step": 2, "train_loss": 1.75},
    ]
    (tmp_path / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    curve = llamafactory.losses(tmp_path, "llama2", "clean")
    assert curve.loss.tolist() == [2.0, 1.5]
    assert set(curve.model) == {"llama2"}


def test_a_failing_command_says_so(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    cli = tmp_path / "llamafactory-cli"
    cli.write_text("#!/bin/sh\nexit 3\n")
    cli.chmod(0o755)
    with pytest.raises(RuntimeError, match="ended with code 3"):
        llamafactory.run("train", tmp_path / "train.yaml")
