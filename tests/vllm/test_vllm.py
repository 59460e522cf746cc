"""RailCap and LNE-blocking inside the real vLLM, offline and over HTTP: `make vllm-test`."""

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LogitsProcessorList

from zerogap import RailCapLogitsProcessor

vllm = pytest.importorskip("vllm", reason="vLLM is not installed; run make vllm-test")

MODEL = str(Path(__file__).parents[2] / "workflow/resources/bases/llama2")
QUESTIONS = [
    "Q: Tom has 4 apples and buys 3 more. How many apples does he have now?\nA:",
    "Q: Anna has 12 pens and gives 5 to Ben. How many pens does Anna have left?\nA:",
    "Q: There are 3 boxes with 6 eggs each. How many eggs are there?\nA:",
]
LENGTH = 32
SETTINGS = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind"}
START_SECONDS = 170
# A GPU runs vLLM's defaults: the second model runner, asynchronous scheduling and captured steps.
ON_GPU = torch.cuda.device_count() > 0  # is_available() would break the fork of vLLM
OPTIONS = {} if ON_GPU else {"enforce_eager": True, "async_scheduling": False}


@pytest.fixture(scope="module")
def reference():
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    return tokenizer, model.eval()


@pytest.fixture(scope="module")
def prompts(reference):
    return [reference[0](question)["input_ids"] for question in QUESTIONS]


def generate(model, prompt, processors=()):
    """The greedy response of `transformers` under some processors, as token ids."""
    output = model.generate(
        torch.tensor([prompt]),
        do_sample=False,
        max_new_tokens=LENGTH,
        logits_processor=LogitsProcessorList(processors),
    )
    return output[0, len(prompt) :].tolist()


@pytest.fixture(scope="module")
def trajectories(reference, prompts):
    return [generate(reference[1], prompt) for prompt in prompts]


@pytest.fixture(scope="module")
def banned(reference, prompts, trajectories):
    """Every question's greedy response with its rail tokens banned (n = 2)."""
    return [
        generate(reference[1], prompt, [RailCapLogitsProcessor([greedy], len(prompt), 2, "ban")])
        for prompt, greedy in zip(prompts, trajectories, strict=True)
    ]


def ban(trajectory):
    return {"trajectory": trajectory, "n": 2, "suppression": "ban"}


class TestOffline:
    @pytest.fixture(scope="class")
    def llm(self):
        with pytest.MonkeyPatch.context() as patch:
            for name, value in SETTINGS.items():
                patch.setenv(name, value)
            yield vllm.LLM(
                MODEL,
                dtype="float32",
                max_model_len=256,
                max_num_seqs=16,
                logprobs_mode="processed_logprobs",
                **OPTIONS,
            )

    def run(self, llm, prompts, params):
        inputs = [{"prompt_token_ids": prompt} for prompt in prompts]
        return [request.outputs for request in llm.generate(inputs, params, use_tqdm=False)]

    def greedy(self, **extra_args):
        return vllm.SamplingParams(temperature=0, max_tokens=LENGTH, extra_args=extra_args or None)

    def test_requests_with_and_without_a_strategy_share_a_batch(
        self, llm, prompts, trajectories, banned
    ):
        requests = [self.greedy(railcap=ban(greedy)) for greedy in trajectories]
        requests += [self.greedy() for _ in prompts]
        outputs = self.run(llm, prompts * 2, requests)
        tokens = [list(responses[0].token_ids) for responses in outputs]
        assert tokens == banned + trajectories
        assert all(a != b for a, b in zip(banned, trajectories, strict=True))

    def test_capped_probabilities_are_those_of_the_processor_for_transformers(
        self, llm, reference, prompts, trajectories
    ):
        requests = [
            vllm.SamplingParams(
                temperature=0.7,
                n=4,
                seed=1,
                max_tokens=LENGTH,
                logprobs=0,
                extra_args={"railcap": {"trajectory": greedy, "n": n}},
            )
            for n, greedy in enumerate(trajectories, start=1)
        ]
        num_capped = 0
        outputs = self.run(llm, prompts, requests)
        for n, (prompt, greedy, responses) in enumerate(
            zip(prompts, trajectories, outputs, strict=True), start=1
        ):
            processor = RailCapLogitsProcessor([greedy], len(prompt), n)
            for response in responses:
                tokens = list(response.token_ids)
                context = torch.tensor([[*prompt, *tokens]])
                with torch.no_grad():
                    logits = reference[1](context).logits[0, len(prompt) - 1 : -1]
                capped = torch.cat(
                    [
                        processor(context[:, : len(prompt) + step], row[None])
                        for step, row in enumerate(logits)
                    ]
                )
                num_capped += int((capped != logits).any(dim=1).sum())
                expected = (capped / 0.7).log_softmax(-1)[range(len(tokens)), tokens]
                found = [
                    step[token].logprob
                    for step, token in zip(response.logprobs, tokens, strict=True)
                ]
                torch.testing.assert_close(torch.tensor(found), expected, atol=2e-3, rtol=0)
        assert num_capped > 10

    def test_lne_blocking_excludes_the_best_token_of_the_first_steps(self, llm, reference, prompts):
        def block(input_ids, scores):
            if input_ids.shape[1] < len(prompts[0]) + 3:
                scores = scores.scatter(1, scores.argmax(-1, keepdim=True), float("-inf"))
            return scores

        expected = generate(reference[1], prompts[0], [block])
        arguments = {"entropy": 1.0, "threshold": 7, "beta": 2.0}  # three blocks
        ((response,),) = self.run(llm, prompts[:1], [self.greedy(lne_blocking=arguments)])
        assert list(response.token_ids) == expected

    @pytest.mark.parametrize("trajectory", [[1, "2"], []])
    def test_invalid_arguments_fail_the_request_and_not_the_engine(self, llm, prompts, trajectory):
        with pytest.raises(vllm.exceptions.VLLMValidationError, match="railcap: trajectory"):
            self.run(llm, prompts[:1], [self.greedy(railcap={"trajectory": trajectory})])
        assert self.run(llm, prompts[:1], [self.greedy()])


class TestServer:
    @pytest.fixture(scope="class")
    def client(self, tmp_path_factory):
        openai = pytest.importorskip("openai")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        log = tmp_path_factory.mktemp("vllm") / "server.log"
        # The server of `vllm serve`; the command fails in vllm-cpu, which has another name.
        arguments = ["-m", "vllm.entrypoints.openai.api_server", "--model", MODEL]
        arguments += ["--host", "127.0.0.1", "--port", str(port)]
        arguments += ["--served-model-name", "toy", "--dtype", "float32"]
        arguments += ["--max-model-len", "256", "--max-num-seqs", "16"]
        arguments += [] if ON_GPU else ["--enforce-eager", "--no-async-scheduling"]
        with log.open("w") as output:
            server = subprocess.Popen(
                [sys.executable, *arguments],
                env=os.environ | SETTINGS,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            wait_for(f"http://127.0.0.1:{port}/health", server, log)
            yield openai.OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none")
        finally:
            server.terminate()
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()

    def complete(self, client, prompt, railcap=None):
        extra_body = {"return_token_ids": True}
        if railcap is not None:
            extra_body["vllm_xargs"] = {"railcap": json.dumps(railcap)}
        completion = client.completions.create(
            model="toy", prompt=prompt, temperature=0, max_tokens=LENGTH, extra_body=extra_body
        )
        return completion.choices[0].token_ids

    def test_a_request_names_its_trajectory(self, client, prompts, trajectories, banned):
        greedy = self.complete(client, prompts[0])
        assert greedy == trajectories[0]
        assert self.complete(client, prompts[0], ban(greedy)) == banned[0]

    def test_invalid_arguments_are_a_bad_request(self, client, prompts):
        import openai

        with pytest.raises(openai.BadRequestError, match="n must be a whole number of at least 1"):
            self.complete(client, prompts[0], {"trajectory": [1], "n": 0})


def wait_for(address, server, log):
    """Wait until the server answers."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(address, timeout=5).close()
        except (urllib.error.URLError, OSError):
            time.sleep(1)
        else:
            return
    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")
