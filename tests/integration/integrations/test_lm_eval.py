"""The model type `zerogap` in the real lm_eval, on a local task and a toy model."""

import json
import re
import shutil

import pytest
import torch
import yaml
from lm_eval import simple_evaluate
from lm_eval.tasks import TaskManager

import zerogap
from helpers.paths import ROOT
from helpers.response_files import json_lines
from helpers.scripts import python
from zerogap.cli import main
from zerogap.data.toy import problems
from zerogap.engine import loading
from zerogap.engine.decoder import Prompt, SamplingParams
from zerogap.engine.sampler import greedy
from zerogap.errors import InputError
from zerogap.families.tokenizers import load_tokenizer
from zerogap.integrations.lm_eval import StrategyLM
from zerogap.scoring import inputs
from zerogap.strategies.base import Intervention
from zerogap.strategies.filtering import DROPPED

LLAMA = ROOT / "workflow/resources/bases/llama2"
QUESTIONS = problems(4, 0, "test")
LENGTH = 24


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """A folder with `toy` (generate_until, three repeats), `toy_short` and `toy_choice`."""
    folder = tmp_path_factory.mktemp("tasks")
    rows = [{"question": q.question, "answer": q.gold} for q in QUESTIONS]
    file = json_lines(folder / "questions.jsonl", rows)
    common = {
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(file)}},
        "test_split": "test",
        "doc_to_text": "Q: {{question}}\nA:",
    }
    toy = common | {
        "task": "toy",
        "doc_to_target": "{{answer}}",
        "output_type": "generate_until",
        "repeats": 3,
        "generation_kwargs": {
            "until": ["Q:"], "max_gen_toks": LENGTH, "do_sample": True, "temperature": 0.7,
            "top_k": 0,
        },
    }  # fmt: skip
    until = toy["generation_kwargs"] | {"until": ["."]}
    short = toy | {"task": "toy_short", "generation_kwargs": until}
    choice = common | {
        "task": "toy_choice",
        "output_type": "multiple_choice",
        "doc_to_choice": ["1", "2"],
        "doc_to_target": 0,
    }
    for task in (toy, short, choice):
        (folder / f"{task['task']}.yaml").write_text(yaml.safe_dump(task))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("datasets.config.HF_DATASETS_CACHE", folder / "cache")
        yield folder


def responses(folder, model, *, base=LLAMA, task="toy", gen_kwargs=None, **arguments):
    """The responses of every document, as the sample log has them."""
    results = simple_evaluate(
        model=model,
        model_args={"pretrained": str(base), "dtype": "float32"} | arguments,
        tasks=[task],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        batch_size=3,
        device="cpu",
        gen_kwargs=gen_kwargs,
        bootstrap_iters=0,
    )
    return [sample["resps"][0] for sample in results["samples"][task]]


GREEDY = {"do_sample": False, "temperature": 0.0}


@pytest.fixture(scope="module")
def plain(tasks):
    """The greedy responses of the toy Llama by lm_eval's own `hf`."""
    return responses(tasks, "hf", gen_kwargs=GREEDY)


@pytest.fixture(scope="module")
def identity(tasks):
    """The toy Llama's sampled responses."""
    return responses(tasks, "zerogap", strategy="identity")


@pytest.mark.parametrize("family", ["llama2", "gemma", "pythia"])
def test_identity_gives_the_responses_of_lm_evals_own_hf(family, identity, tasks):
    base = LLAMA.parent / family
    own = identity if family == "llama2" else responses(tasks, "zerogap", base=base)
    assert own == responses(tasks, "hf", base=base)
    assert all(texts[0].strip() for texts in own)
    assert any(len(set(texts)) > 1 for texts in own)


@pytest.mark.parametrize(
    ("strategy", "arguments"),
    [(None, {}), (zerogap.RailCap(3, "ban"), {"n": 3, "suppression": "ban"})],
    ids=["identity", "railcap"],
)
def test_greedy_responses_are_those_of_zerogap_sample(
    strategy, arguments, llama, plain, tasks, tmp_path, capsys
):
    """To every end token of the generation config, whose other keys have no effect in both."""
    words = llama[1]
    tokens = words(plain[0][0], add_special_tokens=False)["input_ids"]
    settings = {"eos_token_id": [words.eos_token_id, tokens[9]], "repetition_penalty": 9.0}
    shutil.copytree(LLAMA, tmp_path / "model")
    (tmp_path / "model/generation_config.json").write_text(json.dumps(settings))
    arguments = {"strategy": "railcap" if strategy else "identity"} | arguments
    own = responses(tasks, "zerogap", base=tmp_path / "model", gen_kwargs=GREEDY, **arguments)
    note = "model: repetition_penalty 9.0 of its generation config: without effect"
    assert note in capsys.readouterr().err
    table = zerogap.sample(
        loading.load(tmp_path / "model", "float32"),
        words,
        [f"Q: {question.question}\nA:" for question in QUESTIONS],
        num_samples=1,
        strategy=strategy,
        temperature=0,
        max_new_tokens=LENGTH,
        stop="Q:",
    )
    assert note in capsys.readouterr().err
    assert [texts[0].strip() for texts in own] == list(table.text)
    assert "eos" in set(table.finish_reason)


@pytest.fixture(scope="module")
def llama():
    return loading.load(LLAMA, "float32"), load_tokenizer(LLAMA)


class RecordContext:
    """A strategy from outside that keeps what it was told."""

    def __init__(self):
        self.contexts = []

    def prepare(self, context):
        self.contexts.append(context)
        return Intervention()


def context_of(tasks, *names):
    """What a strategy is given for tasks that are evaluated together."""
    strategy = RecordContext()
    lm = StrategyLM(str(LLAMA), strategy, dtype="float32", device="cpu", batch_size=2)
    simple_evaluate(
        model=lm,
        tasks=list(names),
        task_manager=TaskManager(include_path=str(tasks), include_defaults=False),
        bootstrap_iters=0,
    )
    (context,) = strategy.contexts
    return context


def test_a_strategy_gets_one_trajectory_per_request_as_the_engine_decodes_it(llama, tasks):
    context = context_of(tasks, "toy")
    model, tokenizer = llama
    texts = [f"Q: {question.question}\nA:" for question in QUESTIONS]
    prompts = [Prompt(text, tokenizer(text)["input_ids"]) for text in texts]
    sampling = SamplingParams(temperature=0, max_new_tokens=LENGTH, stop=["Q:"])
    expected = greedy(loading.decoder(model), prompts, tokenizer, sampling)
    found = dict(zip(map(tuple, context.trajectories), context.entropies, strict=True))
    assert sorted(found) == sorted(tuple(response.token_ids) for response in expected)
    for response in expected:
        entropies = torch.tensor(found[tuple(response.token_ids)])
        torch.testing.assert_close(entropies, torch.tensor(response.entropy), atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_length_under_another_name_is_that_of_the_trajectory_too(name, plain, tasks):
    gen_kwargs = GREEDY | {"max_gen_toks": None, name: 5}
    short = responses(tasks, "zerogap", gen_kwargs=gen_kwargs, strategy="ted", tau=0)
    assert short == [[DROPPED] * 3] * len(QUESTIONS)  # they are the trajectory
    assert plain != short


def test_tasks_with_the_same_prompts_have_trajectories_of_their_own(tasks):
    context = context_of(tasks, "toy", "toy_short")
    trajectories = sorted(map(tuple, context.trajectories))
    assert len(trajectories) == 2 * len(QUESTIONS)
    # Each trajectory that ends at the full stop is the beginning of a longer one.
    pairs = zip(trajectories[::2], trajectories[1::2], strict=True)
    assert all(longer[: len(short)] == short for short, longer in pairs)


def test_ted_drops_responses_near_the_trajectory_and_score_leaves_them_out(
    identity, tasks, tmp_path
):
    filtered = responses(tasks, "zerogap", strategy="ted", tau=4)
    assert any(DROPPED in texts for texts in filtered)
    for before, after in zip(identity, filtered, strict=True):
        kept = [text for text in after if text != DROPPED]
        assert after == kept + [DROPPED] * (3 - len(kept))
        assert [text for text in before if text in kept][: len(kept)] == kept
        assert len(set(kept)) == len(kept)
    records = [
        {"doc_id": k, "target": question.gold, "resps": [texts]}
        for k, (question, texts) in enumerate(zip(QUESTIONS, filtered, strict=True))
    ]
    counts = inputs.load(json_lines(tmp_path / "samples_toy.jsonl", records)).counts
    assert list(counts["n_samples"]) == [3 - texts.count(DROPPED) for texts in filtered]


def test_lne_blocking_is_applied(plain, tasks):
    blocked = responses(tasks, "zerogap", gen_kwargs=GREEDY, strategy="lne_blocking", threshold=7)
    assert all(a[0] != b[0] for a, b in zip(plain, blocked, strict=True))


def test_the_command_writes_logs_that_zerogap_score_reads(tasks, tmp_path):
    arguments = ["--model", "zerogap", "--tasks", "toy", "--include_path", str(tasks)]
    arguments += ["--model_args", f"pretrained={LLAMA},dtype=float32,strategy=railcap,n=2"]
    arguments += ["--batch_size", "8", "--device", "cpu", "--log_samples", "--output_path", "logs"]
    command = ["-m", "zerogap", "lm-eval", *arguments]
    assert python(*command, cwd=tmp_path, env={"HF_HOME": str(tmp_path)}).returncode == 0
    (log,) = (tmp_path / "logs").rglob("samples_toy_*.jsonl")
    assert list(inputs.load(log).counts["n_samples"]) == [3] * len(QUESTIONS)
    assert main(["score", "--clean", str(log), f"railcap={log}", "--resamples", "100"]) == 0


@pytest.mark.parametrize(
    ("tasks_given", "message"),
    [([], "No tasks specified"), (["--tasks", "gsm8k_cott"], "Tasks not found: gsm8k_cott")],
)
def test_a_missing_task_is_one_clear_line(tasks_given, message):
    run = python("-m", "zerogap", "lm-eval", "--model", "dummy", *tasks_given)
    assert run.returncode == 2
    last_line = run.stderr.splitlines()[-1]
    assert last_line.startswith(f"error: --tasks: {message}")
    assert "zerogap lm-eval ls tasks" in last_line


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"strategy": "railcup"}, "'railcup' must be one of identity, ted,"),
        (
            {"strategy": "railcap", "m": 4},
            "unexpected keyword argument 'm'; neither the strategy nor",
        ),
        ({"strategy": "shortcut"}, "strategy=shortcut also decodes with the base model"),
        ({"strategy": "railcap", "task": "toy_choice"}, "choose tasks with output_type"),
        ({"strategy": "railcap", "gen_kwargs": {"max_length": 99}}, "max_length counts the prompt"),
    ],
)
def test_what_a_strategy_cannot_do_is_one_clear_line(arguments, message, tasks):
    with pytest.raises(InputError, match=rf"^[^\n]*{re.escape(message)}[^\n]*$"):
        responses(tasks, "zerogap", **arguments)
