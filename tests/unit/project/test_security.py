"""What the package must not do: run code that came with a model, or read a format that can."""

import re

import pytest

from helpers.paths import ROOT

FILES = [*(ROOT / "workflow").rglob("*.py"), *(ROOT / "workflow").rglob("*.smk")]
MODEL_LOADED = re.compile(r"AutoModelForCausalLM\.from_pretrained\((?:[^()]|\([^()]*\))*\)")


@pytest.mark.parametrize(
    ("pattern", "example"),
    [
        (r"trust_remote_code", "load(folder, trust_remote_code=True)"),
        (r"import (?:c?pickle|dill|joblib|cloudpickle)|allow_pickle|read_pickle", "import pickle"),
        (r"(?<![.\w])(?:eval|exec)\(", "x = eval(text)"),
        (r"torch\.load\((?!.*weights_only=True)", "torch.load(path)"),
        (r"shell=True|os\.system|os\.popen", "subprocess.run(command, shell=True)"),
    ],
    ids=["code of a model's repository", "pickles", "evaluated text", "PyTorch files", "a shell"],
)
def test_the_package_does_not_use(pattern, example) -> None:
    assert re.search(pattern, example)
    assert [str(path) for path in FILES if re.search(pattern, path.read_text())] == []


def test_models_are_read_from_safetensors_only() -> None:
    calls = [call for path in FILES for call in MODEL_LOADED.findall(path.read_text())]
    calls = [call for call in calls if "gguf_file" not in call]
    assert calls
    assert [call for call in calls if "use_safetensors=True" not in call] == []
