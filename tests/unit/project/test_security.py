"""What the package must not do: run code that came with a model, or read a format that can."""

import re

import pytest

from helpers.paths import ROOT

FILES = [*(ROOT / "workflow").rglob("*.py"), *(ROOT / "workflow").rglob("*.smk")]
FORBIDDEN = {
    "code from a model's repository": re.compile(r"trust_remote_code"),
    "pickles": re.compile(r"import (?:c?pickle|dill|joblib|cloudpickle)|allow_pickle|read_pickle"),
    "evaluated text": re.compile(r"(?<![.\w])(?:eval|exec)\("),
    "PyTorch files with code": re.compile(r"torch\.load\((?!.*weights_only=True)"),
    "a shell": re.compile(r"shell=True|os\.system|os\.popen"),
}
MODEL_LOADED = re.compile(r"AutoModelForCausalLM\.from_pretrained\((?:[^()]|\([^()]*\))*\)")


@pytest.mark.parametrize("what", FORBIDDEN)
def test_the_package_does_not_use(what) -> None:
    found = [str(path) for path in FILES if FORBIDDEN[what].search(path.read_text())]
    assert not found


def test_models_are_read_from_safetensors_only() -> None:
    calls = [
        (path.name, call)
        for path in FILES
        for call in MODEL_LOADED.findall(path.read_text())
        if "gguf_file" not in call
    ]
    assert len(calls) >= 4
    assert not [name for name, call in calls if "use_safetensors=True" not in call]


@pytest.mark.parametrize(
    ("what", "line"),
    [
        ("code from a model's repository", "load(folder, trust_remote_code=True)"),
        ("pickles", "import pickle"),
        ("evaluated text", "x = eval(text)"),
        ("PyTorch files with code", "torch.load(path)"),
        ("a shell", "subprocess.run(command, shell=True)"),
    ],
)
def test_the_patterns_find_what_they_look_for(what, line) -> None:
    assert FORBIDDEN[what].search(line)
