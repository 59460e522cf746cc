"""Package metadata, citation, public names and repository files agree with each other."""

import importlib
import re
import tomllib
from itertools import pairwise

import pytest
import yaml

import zerogap
from helpers.paths import ROOT

PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]
TESTPATHS = PYPROJECT["tool"]["pytest"]["ini_options"]["testpaths"]
CI_TEXT = (ROOT / ".github/workflows/ci.yml").read_text()
CI = yaml.safe_load(CI_TEXT)
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_version_is_the_same_everywhere() -> None:
    assert PROJECT["version"] == zerogap.__version__ == CITATION["version"]


def test_licence_and_paper_are_stated() -> None:
    assert PROJECT["license"] == CITATION["license"] == "MIT"
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    authors = CITATION["preferred-citation"]["authors"]
    assert [author["family-names"] for author in authors] == ["Hou", "Jiao", "Wang", "Li"]


def test_classifiers_continuous_integration_and_requirement_name_the_same_pythons() -> None:
    listed = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["classifiers"]))
    assert CI["jobs"]["unit"]["strategy"]["matrix"]["python-version"] == listed
    first, end = re.fullmatch(r">=(3\.\d+),<(3\.\d+)", PROJECT["requires-python"]).groups()  # type: ignore[union-attr]
    assert (first, f"3.{int(end.split('.')[1]) - 1}") == (listed[0], listed[-1])


def test_continuous_integration_runs_every_folder_of_tests() -> None:
    """`make test-fast` runs the unit tests; there is no GPU."""
    shards = CI["jobs"]["tests"]["strategy"]["matrix"]["include"]
    words = " ".join(shard["paths"] for shard in shards).split()
    ignored = {word for previous, word in pairwise(words) if previous == "--ignore"}
    run = {word for previous, word in pairwise(["", *words]) if previous != "--ignore"}
    assert ignored <= run
    assert run - ignored - {"--ignore"} == set(TESTPATHS) - {"tests/unit", "tests/gpu"}


def test_actions_are_pinned_by_commit() -> None:
    files = [*(ROOT / ".github").rglob("*.yml")]
    used = [use for file in files for use in re.findall(r"uses: (\S+)", file.read_text())]
    assert used
    assert all(re.search(r"@[0-9a-f]{40}$", use) or use.startswith("./") for use in used)


def test_every_extra_is_described_on_the_installation_page() -> None:
    page = (ROOT / "docs/quick-start.md").read_text()
    assert all(f"`{extra}`" in page for extra in PROJECT["optional-dependencies"])


def test_every_profile_is_described() -> None:
    page = (ROOT / "docs/workflow.md").read_text()
    for file in (ROOT / "profiles").glob("*/config.yaml"):
        assert f"`{file.parent.name}`" in page


def test_make_targets_of_the_continuous_integration_exist() -> None:
    targets = set(re.findall(r"run: make ([a-z-]+)$", CI_TEXT, re.MULTILINE))
    targets |= set(CI["jobs"]["long"]["strategy"]["matrix"]["target"])
    makefile = (ROOT / "Makefile").read_text()
    for target in targets:
        assert re.search(rf"^{re.escape(target)}:", makefile, re.MULTILINE), target


def test_every_public_name_can_be_imported() -> None:
    assert all(getattr(zerogap, name) for name in zerogap.__all__)


def test_a_missing_package_is_named_with_the_extra_that_brings_it(monkeypatch) -> None:
    def without_torch(name: str) -> None:
        raise ModuleNotFoundError("No module named 'torch'", name="torch")

    monkeypatch.setattr(importlib, "import_module", without_torch)
    message = r"zerogap\.sample needs torch; .*'/path/to/zerogap\[decoding\]'"
    with pytest.raises(ImportError, match=message):
        _ = zerogap.sample


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
