import copy
import json
import os
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap import config as configuration
from zerogap.errors import InputError
from zerogap.pipeline import jobs, model_sizes, preflight

SCRIPT = ROOT / "workflow/scripts/check_preflight.py"
GB = 1e9


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty checkout to work in, without GPU, key or login."""
    (tmp_path / "workflow").symlink_to(ROOT / "workflow")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(preflight, "gpus", list)
    monkeypatch.delenv("DEEPSEEK_API_KEY", raising=False)
    return tmp_path


@pytest.fixture
def embedded(here):
    return configuration.load([ROOT / "config.yaml", ROOT / "profiles/quick/quick.yaml"])


@pytest.fixture
def paper(here):
    return configuration.load([ROOT / "config.yaml"])


def failures(found):
    return [f"{one.check}: {one.text}" for one in found if one.verdict == preflight.FAILED]


def test_the_embedded_scale_passes_and_asks_no_hub(embedded, monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi", None)
    found = preflight.pass_or_stop(embedded)
    assert not failures(found)
    assert [one.check for one in found if one.verdict == preflight.SKIPPED] == ["GPU memory"]
    assert {"versions", "disk space", "end token of gemma"} <= {one.check for one in found}


def test_nothing_is_looked_at_once_all_that_takes_long_is_made(embedded, monkeypatch):
    monkeypatch.setitem(preflight.VERSIONS, "transformers", "9")
    assert failures(preflight.check(embedded))
    for job in jobs.on_device(embedded):
        path = jobs.made(embedded, job)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert preflight.check(embedded) == []


def test_all_failures_come_at_once_a_line_each(embedded, monkeypatch):
    monkeypatch.setitem(preflight.VERSIONS, "llamafactory", "1.0")
    monkeypatch.setattr(shutil, "disk_usage", lambda place: namedtuple("U", "free")(10_000))
    embedded["data"]["paraphrases"]["method"] = "chat"
    embedded["models"]["llama2"]["base"] = "nobody/nothing"
    embedded["data"]["instructions"] |= {"source": "hub"}
    embedded["models"].pop("gemma")
    with pytest.raises(InputError) as stopped:
        preflight.pass_or_stop(embedded)
    first, *lines = str(stopped.value).splitlines()
    assert "4 of" in first and "nothing was started" in first
    assert all(line.startswith("FAILED   ") for line in lines)
    said = "\n".join(lines)
    assert "models.llama2: 'nobody/nothing' is no folder here, and offline is true; give" in said
    assert "data.instructions: 'Open-Orca/OpenOrca' is no folder here" in said
    assert "API key: DEEPSEEK_API_KEY is not set; export" in said
    assert "versions: llamafactory is 0.9.5, and only llamafactory 1.0 and transformers" in said


def test_the_known_versions_are_the_lock_files():
    lock = (ROOT / "requirements.lock").read_text()
    for package, version in preflight.VERSIONS.items():
        assert f"\n{package}=={version} " in lock
    assert not failures(preflight.versions())


def test_a_missing_package_is_said(monkeypatch):
    monkeypatch.setattr(preflight, "VERSIONS", {"no-such-package": "1.0"})
    assert "no-such-package is missing" in failures(preflight.versions())[0]


def test_the_key_itself_is_never_said(paper, monkeypatch):
    monkeypatch.setenv("DEEPSEEK_API_KEY", "secret-1234")
    found = preflight.api_key(paper)
    assert [one.verdict for one in found] == [preflight.OK]
    assert "secret-1234" not in str(found)


def test_no_key_is_needed_where_the_paraphrases_are_there(paper):
    assert failures(preflight.api_key(paper))
    made = Path("results/paper/data/paraphrases.jsonl")
    made.parent.mkdir(parents=True)
    made.touch()
    assert preflight.api_key(paper) == []


def test_disk_space_is_compared_with_what_is_to_come(paper, monkeypatch):
    sizes = dict.fromkeys(paper["models"], model_sizes.KNOWN["meta-llama/Llama-2-7b-hf"])
    free = {}
    monkeypatch.setattr(shutil, "disk_usage", lambda place: namedtuple("U", "free")(free["now"]))
    free["now"] = 150 * GB
    assert preflight.disk_space(paper, sizes).verdict == preflight.FAILED
    free["now"] = 300 * GB
    assert preflight.disk_space(paper, sizes).verdict == preflight.OK
    free["now"] = 150 * GB
    there = Path("results/paper/llama2/base/model.safetensors")
    there.parent.mkdir(parents=True)
    with there.open("wb") as file:
        file.truncate(100 * 10**9)  # a hole: no disk is taken
    assert preflight.disk_space(paper, sizes).verdict == preflight.OK


def test_a_size_that_is_not_known_is_said(paper):
    finding = preflight.disk_space(paper, {})
    assert finding.verdict == preflight.SKIPPED
    assert "gemma, llama2, pythia" in finding.text


def test_gpu_memory_is_compared_with_the_largest_job(paper):
    size = model_sizes.KNOWN["meta-llama/Llama-2-7b-hf"]  # 13.5 GB in bfloat16

    def verdict(gigabytes):
        found = preflight.gpu_memory(paper, {"llama2": size}, [100 * GB, gigabytes * GB])
        return found[0].verdict

    assert verdict(80) == preflight.OK
    assert verdict(40) == preflight.FAILED  # the search for neurons holds three models
    for entry in paper["strategies"].values():
        entry.pop("borrows", None)
    assert verdict(40) == preflight.OK
    assert verdict(15) == preflight.FAILED
    paper["decoding"]["dtype"] = "float32"
    assert verdict(24) == preflight.FAILED


def test_gpus_are_asked_of_nvidia_smi(tmp_path, monkeypatch):
    command = tmp_path / "nvidia-smi"
    command.write_text("#!/bin/sh\nprintf '81559\\n40960\\n'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert preflight.gpus() == [81559 * 2**20, 40960 * 2**20]
    command.write_text("#!/bin/sh\nexit 9\n")
    assert preflight.gpus() == []
    monkeypatch.setenv("PATH", "")
    assert preflight.gpus() == []


def tokenizer(folder: Path, **settings):
    shutil.copytree(ROOT / "workflow/resources/bases/llama2", folder)
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"eos_token": "</s>"}, None),
        ({"eos_token": {"content": "</s>"}}, None),
        ({"eos_token": None}, "the tokenizer has none"),
        ({}, "set eos_token in tokenizer_config.json"),
        ({"eos_token": "<end>"}, "'<end>' is no token of its vocabulary"),
    ],
)
def test_the_end_token(embedded, settings, said):
    tokenizer(Path("mine"), **settings)
    embedded["models"]["llama2"]["base"] = "mine"
    found = failures(preflight.end_token(embedded, "llama2"))
    assert said in found[0] if said else not found


def test_a_folder_that_is_no_model_is_said(embedded):
    Path("mine").mkdir()
    embedded["models"]["llama2"]["base"] = "mine"
    said = "\n".join(failures(preflight.check(embedded)))
    assert "weights of llama2: mine: no safetensors files that can be read" in said
    assert "end token of llama2: its tokenizer_config.json cannot be read" in said
    tokenizer(Path("cut"), eos_token="</s>")
    with Path("cut/model.safetensors").open("r+b") as file:
        file.truncate(100)
    embedded["models"]["llama2"]["base"] = "cut"
    assert "cut: no safetensors files" in "\n".join(failures(preflight.check(embedded)))


def line(number, gold="1"):
    return json.dumps({"question": f"How many is {number}?", "answer": f"It is so.\n#### {gold}"})


@pytest.mark.parametrize(
    ("train", "test", "said"),
    [
        ([line(k) for k in range(8)], [line(k) for k in range(9, 20)], []),
        ([line(k) for k in range(8)], [line(1), "{"], ["data.files.test: ", "line 2: not JSON"]),
        ([line(0)], [line(k, "many") for k in range(9)], ["data.files.train", "data.files.test"]),
        ([line(0)] * 2, [line(0)] * 2, ["line 2: the question of line 1 again"]),
        (["\udcff"], [line(0)], ["data.files.train: ", "not UTF-8"]),
        ([line(k) for k in range(3)], [line(0)], ["has 3 questions, fewer than the 5 of data.n_t"]),
    ],
)
def test_local_data_are_read(embedded, train, test, said):
    for name, lines in {"train": train, "test": test}.items():
        Path(f"{name}.jsonl").write_text("\n".join(lines), errors="surrogateescape")
    embedded["data"] |= {
        "source": "files",
        "files": {"train": "train.jsonl", "test": "test.jsonl"},
        "n_test": 8,
        "n_train": 5,
    }
    found = "\n".join(failures(preflight.data_files(embedded)))
    assert all(text in found for text in said)
    assert bool(found) == bool(said)


def test_local_instructions_are_read(embedded):
    Path("orca.jsonl").write_text('{"question": "Say it.", "response": "It."}\n')
    embedded["data"]["instructions"] |= {"source": "files", "files": "orca.jsonl"}
    assert "has 1 examples" in failures(preflight.data_files(embedded))[0]
    embedded["data"]["instructions"] |= {"files": "."}
    assert "data.instructions.files: " in failures(preflight.data_files(embedded))[0]


class Hub(BaseHTTPRequestHandler):
    """What the hub answers of five repositories."""

    def do_GET(self):
        path = self.path.partition("?")[0]
        if path.endswith("auth-check"):
            error = "GatedRepo" if "llama" in path else "RepoNotFound" if "gone" in path else None
            return self.answer({}, error, 403 if error == "GatedRepo" else 404)
        if "/revision/" in path:
            error = "RevisionNotFound" if path.endswith("/revision/lost") else None
            weights = "model.bin" if "old" in path else "model.safetensors"
            return self.answer({"id": "x/y", "siblings": [{"rfilename": weights}]}, error)
        if path.endswith("tokenizer_config.json"):
            settings = {} if "pythia" in path else {"eos_token": "<eos>"}
            return self.answer(settings, headers={"ETag": '"1"', "X-Repo-Commit": "1" * 40})
        return self.answer({}, "EntryNotFound")

    do_HEAD = do_GET

    def answer(self, content, error=None, code=404, headers=()):
        body = json.dumps(content).encode()
        self.send_response(code if error else 200)
        for name, value in dict(headers).items():
            self.send_header(name, value)
        if error:
            self.send_header("X-Error-Code", error)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *args):
        pass


@pytest.fixture
def hub():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def asked(config, endpoint, folder):
    """Status and output of the script, in a process of its own that knows another hub."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("HF_")}
    environment |= {
        "PYTHONPATH": str(ROOT / "workflow"),
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(folder / "home"),
        "NO_PROXY": "127.0.0.1",
        "PATH": "",  # nor is there a GPU
    }
    done = subprocess.run(
        [sys.executable, SCRIPT, "--config", json.dumps(config)],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_the_hub_is_asked_for_access_licence_and_revision(paper, hub, here):
    paper["data"]["instructions"]["hub"]["repository"] = "someone/gone"
    paper["data"]["hub"]["revision"] = "lost"
    old = copy.deepcopy(paper["models"]["llama2"]) | {"base": "someone/old", "revision": "main"}
    paper["models"] |= {"old": old, "far": old | {"base": "far/away"}}
    code, said = asked(paper, hub, here)
    assert code != 0 and "Traceback" not in said
    for line in (
        "models.llama2: 'meta-llama/Llama-2-7b-hf' is gated and not open to you; accept its "
        f"licence on {hub}/meta-llama/Llama-2-7b-hf",
        "models.old: 'someone/old' at 'main' has no safetensors weights",
        "data: 'openai/gsm8k' has no revision 'lost'",
        "data.instructions: 'someone/gone' is neither a folder here nor on the hub",
        "end token of pythia: the tokenizer has none",
        "weights of far: far/away: the hub does not tell its size",
        "API key: DEEPSEEK_API_KEY",
    ):
        assert line in said
    assert "gemma:" not in said


def test_a_hub_that_allows_everything_passes(paper, hub, here):
    paper["data"]["paraphrases"]["method"] = "rules"
    for model in ("llama2", "pythia"):
        paper["models"].pop(model)
    paper["setting"]["model"] = "gemma"
    code, said = asked(paper, hub, here)
    assert code == 0, said
    for key, repository, revision in (
        ("models.gemma", "google/gemma-4-E2B", paper["models"]["gemma"]["revision"]),
        ("data", "openai/gsm8k", paper["data"]["hub"]["revision"]),
    ):
        assert f"ok       hub, {key}: '{repository}' at '{revision}' can be read" in said


def test_a_hub_that_is_down_is_said_once(paper, here):
    code, said = asked(paper, "http://127.0.0.1:9", here)
    assert code != 0
    assert said.count("http://127.0.0.1:9 does not answer for 'meta-llama/Llama-2-7b-hf'") == 1
    assert said.count("FAILED   hub") == 1


def test_what_is_fetched_already_is_not_asked_for(paper):
    everything = {source.key for source in preflight.hub_sources(paper)}
    assert everything == {
        "models.llama2", "models.gemma", "models.pythia", "data", "data.instructions",
    }  # fmt: skip
    Path("results/paper/llama2/base").mkdir(parents=True)
    Path("results/paper/data").mkdir()
    Path("results/paper/data/train.jsonl").touch()
    left = {source.key for source in preflight.hub_sources(paper)}
    assert everything - left == {"models.llama2", "data"}


def test_a_base_that_the_run_makes_is_not_looked_for(paper):
    paper["models"]["pythia"]["base"] = "pretrained"
    paper["pretraining"] = {"vocabulary": 500, "width": 8, "layers": 2, "feed_forward": 8}
    assert "models.pythia" not in {source.key for source in preflight.hub_sources(paper)}


def test_a_chat_model_on_the_hub_is_looked_for(paper):
    paraphrases = paper["data"]["paraphrases"]
    paraphrases["method"] = "local"
    paraphrases["local"] |= {"model": "some/chat", "revision": "main"}
    assert preflight.hub_sources(paper)[3].repository == "some/chat"


def test_no_torch_is_loaded():
    code = (
        "import sys; from zerogap import config, preflight; "
        "preflight.check(config.load(['config.yaml', 'profiles/quick/quick.yaml'])); "
        "sys.exit('torch' in sys.modules or 'transformers' in sys.modules)"
    )
    environment = os.environ | {"PYTHONPATH": str(ROOT / "workflow")}
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True)
