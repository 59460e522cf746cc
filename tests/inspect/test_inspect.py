"""The model provider and the scorers inside the real Inspect, on a local task."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

inspect_ai = pytest.importorskip(
    "inspect_ai", reason="needs inspect-ai, in an environment of its own"
)
from inspect_ai import Task  # noqa: E402
from inspect_ai._util.error import PrerequisiteError  # noqa: E402
from inspect_ai.dataset import Sample  # noqa: E402
from inspect_ai.log import read_eval_log  # noqa: E402
from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, get_model  # noqa: E402
from inspect_ai.scorer import match  # noqa: E402
from inspect_ai.solver import solver  # noqa: E402

import zerogap  # noqa: E402
from zerogap.integrations import inspect_ai as integration  # noqa: E402

BASES = Path(__file__).parents[2] / "workflow/resources/bases"
FOLDER, OTHER = str(BASES / "llama2"), str(BASES / "pythia")
RAILCAP = {"strategy": "railcap", "n": 2}
QUESTIONS = {
    "Q: Tom has 4 apples and buys 3 more. How many apples does he have now?\nA:": "7",
    "Q: Anna has 12 pens and gives 5 to Ben. How many pens does Anna have left?\nA:": "7",
}
EPOCHS = 5


def task_of(**options):
    samples = [Sample(input=question, target=gold) for question, gold in QUESTIONS.items()]
    return Task(dataset=samples, scorer=match(numeric=True), **options)


@pytest.fixture
def calls(monkeypatch):
    """The prompts and options of each call of the sampler."""
    seen = []

    def sample(*arguments, **options):
        seen.append((list(arguments[2].values()), options))
        return zerogap.sample(*arguments, **options)

    monkeypatch.setattr(integration, "sample", sample)
    return seen


@pytest.fixture
def evaluate(tmp_path):
    def evaluate(model=RAILCAP, folder=FOLDER, task=None, epochs=EPOCHS, **options):
        (log,) = inspect_ai.eval(
            task or task_of(), model=get_model(f"zerogap/{folder}", memoize=False, **model),
            epochs=epochs, log_dir=str(tmp_path), display="none",
            **{"max_tokens": 12, "seed": 3, "fail_on_error": True} | options,
        )  # fmt: skip
        return log

    return evaluate


def responses(log):
    """Prompt → responses in the order of epochs."""
    texts = {}
    for sample in sorted(log.samples, key=lambda sample: sample.epoch):
        texts.setdefault(sample.input, []).append(sample.output.completion)
    return {prompt: texts[prompt] for prompt in QUESTIONS}


@solver
def later_epochs(first):
    async def solve(state, generate):
        return await generate(state) if state.epoch >= first else state

    return solve


def test_epochs_are_one_call_whatever_the_connections(evaluate, calls):
    log = evaluate()
    assert log.status == "success", log.error
    assert len(log.samples) == EPOCHS * len(QUESTIONS)
    ((prompts, options),) = calls
    assert sorted(prompts) == sorted(QUESTIONS)
    assert (options["num_samples"], options["max_new_tokens"], options["seed"]) == (EPOCHS, 12, 3)
    assert repr(options["strategy"]).startswith("RailCap(n=2,")
    drawn = responses(log)
    assert any(len(set(texts)) > 1 for texts in drawn.values())
    assert all(sample.output.usage.output_tokens <= 12 for sample in log.samples)
    assert responses(evaluate(max_connections=1)) == drawn
    assert responses(evaluate(seed=4)) != drawn
    continued = responses(evaluate(task=task_of(solver=later_epochs(4))))
    assert {prompt: texts[3:] for prompt, texts in continued.items()} == {
        prompt: texts[3:] for prompt, texts in drawn.items()
    }


def test_a_cache_keeps_strategies_apart(evaluate, calls, tmp_path, monkeypatch):
    monkeypatch.setenv("INSPECT_CACHE_DIR", str(tmp_path / "cache"))
    first = evaluate(cache=True)
    other = evaluate(RAILCAP | {"n": 1}, cache=True)
    assert len(calls) == 2
    assert responses(other) != responses(first)
    assert responses(evaluate(cache=True)) == responses(first)
    assert len(calls) == 2


def test_temperature_stop_and_end_of_length_are_honoured(evaluate):
    greedy = responses(evaluate(temperature=0, epochs=2, max_tokens=8))
    assert all(first == second for first, second in greedy.values())
    log = evaluate(temperature=0, epochs=1, max_tokens=8)
    assert {sample.output.stop_reason for sample in log.samples} <= {"stop", "max_tokens"}
    (text, *_) = (text for texts in greedy.values() for text in texts if " " in text)
    stopped = responses(evaluate(temperature=0, epochs=1, max_tokens=8, stop_seqs=[" "]))
    assert all(" " not in texts[0] for texts in stopped.values())
    assert any(text.startswith(texts[0]) for texts in stopped.values())


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ({"strategy": "rail"}, "must be one of identity"),
        ({"strategy": "railcap", "n": 0}, "n must be a whole number"),
        ({"strategy": "railcap", "m": 4}, "unexpected keyword argument 'm'"),
        ({"chat_template": "my.jinja"}, "must be one of apply, ignore, not my.jinja"),
        ({"strategy": "railcap", "neurons": "nowhere"}, "neurons: "),
        ({"dtype": "auto"}, "must be one of float32, bfloat16, float16, not auto"),
    ],
)
def test_a_wrong_model_argument_is_one_line(model, message):
    with pytest.raises(PrerequisiteError) as error:
        get_model(f"zerogap/{FOLDER}", memoize=False, **model)
    assert message in error.value.message
    assert "\n" not in error.value.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 3}, "top_k is not supported"),
        ({"top_p": 2.0}, "top_p: must be above 0"),
        ({"max_tokens": 100_000}, "exceeds the model's context"),
    ],
)
def test_an_unsupported_option_stops_the_task_with_its_name(evaluate, options, message):
    log = evaluate(epochs=1, **options)
    assert log.status == "error"
    assert message in log.error.message


def test_samples_with_one_prompt_get_different_responses_of_one_call(evaluate, calls):
    prompt = next(iter(QUESTIONS))
    samples = [Sample(input=prompt, target="7") for _ in range(3)]
    task = Task(dataset=samples, scorer=match(numeric=True))
    log = evaluate(task=task)
    assert len({sample.output.completion for sample in log.samples}) > EPOCHS
    ((prompts, options),) = calls
    assert (prompts, options["num_samples"]) == ([prompt] * 3, EPOCHS)


def test_tasks_of_different_epochs_at_once_draw_each_response_once(calls, tmp_path):
    model = get_model(f"zerogap/{FOLDER}", memoize=False)
    tasks = [task_of(name=str(epochs), epochs=epochs) for epochs in (EPOCHS, 1)]
    logs = inspect_ai.eval(
        tasks, model=model, max_tasks=2, max_tokens=12, log_dir=str(tmp_path), display="none"
    )
    assert [log.status for log in logs] == ["success"] * 2
    assert sum(len(prompts) * options["num_samples"] for prompts, options in calls) == 2 * 6


def test_an_attempt_that_takes_too_long_is_answered_by_the_next(evaluate, calls, monkeypatch):
    expected = responses(evaluate())
    draw = integration.sample

    def slow(*arguments, **options):
        time.sleep(1.5)
        return draw(*arguments, **options)

    calls.clear()
    monkeypatch.setattr(integration, "sample", slow)
    assert responses(evaluate(attempt_timeout=1)) == expected
    assert len(calls) == 1


def test_a_message_with_an_image_is_refused(evaluate):
    image = ContentImage(image="data:image/png;base64,iVBORw0KGgo=")
    message = ChatMessageUser(content=[ContentText(text="How many?"), image])
    log = evaluate(task=Task(dataset=[Sample(input=[message], target="1")], scorer=match()))
    assert log.status == "error"
    assert "image is not supported" in log.error.message


def test_a_message_that_the_chat_template_cannot_write_is_one_line(evaluate, tmp_path):
    folder = shutil.copytree(FOLDER, tmp_path / "chat")
    (folder / "chat_template.jinja").write_text("{{ raise_exception('System role unsupported') }}")
    log = evaluate(folder=folder, epochs=1)
    assert log.error.message.startswith("zerogap: the chat template does not write")
    assert "System role unsupported" in log.error.message


def test_peakedness_compares_with_the_greedy_response_of_the_model_without_a_strategy(evaluate):
    scorer = integration.peakedness()  # one for all logs
    plain = {"strategy": "identity"}
    greedy = [evaluate(plain, folder, temperature=0, epochs=1) for folder in (FOLDER, OTHER)]
    capped = evaluate(temperature=0, epochs=1, max_tokens=40)
    assert responses(capped) != responses(evaluate(plain, temperature=0, epochs=1, max_tokens=40))
    for log, value in zip((*greedy, capped), (1, 1, 0), strict=True):
        scored = inspect_ai.score(log, scorer, action="overwrite", display="none")
        assert scored.results.scores[0].metrics["mean"].value == value


def test_disagreement_is_not_scored_where_no_rule_reads_the_gold_answer(evaluate):
    task = Task(dataset=[Sample(input=next(iter(QUESTIONS)), target="B")], scorer=match())
    log = evaluate(task=task, epochs=1)
    scored = inspect_ai.score(
        log, integration.rule_disagreement(), action="overwrite", display="none"
    )
    assert scored.results.scores[0].scored_samples == 0


def test_scores_are_appended_to_a_log(evaluate):
    log = evaluate({"strategy": "identity"}, temperature=0, epochs=2)
    for name in ("peakedness", "rule_disagreement"):
        command = ("score", log.location, "--action", "append", "--scorer", f"zerogap/{name}")
        done = subprocess.run(
            [Path(sys.executable).with_name("inspect"), *command, "--overwrite"],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    scores = {score.name: score for score in read_eval_log(log.location).results.scores}
    assert {"match", "peakedness", "rule_disagreement"} == {name.split("/")[-1] for name in scores}
    peaked = next(score for name, score in scores.items() if "peakedness" in name)
    assert peaked.metrics["mean"].value == 1  # all responses are the greedy one
