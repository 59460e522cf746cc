"""No value of the configuration, and no name of a folder, is read as shell code."""

import re
import shutil

import pytest
import yaml

from helpers.configurations import nested
from helpers.dry_runs import link_checkout, snakemake
from helpers.paths import ROOT

RULES = sorted((ROOT / "workflow/rules").glob("*.smk"))
SHELL = re.compile(r'^    (?:    )?shell:\n((?:\s+f?"[^\n]*"\n)+)', re.MULTILINE)
NEEDS_QUOTES = re.compile(r"\{(?:input|output|log)(?:\.\w+)?\}")
INJECTION = "b;touch pwned;x y"


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_every_path_in_a_shell_command_is_quoted(path) -> None:
    text = path.read_text()
    blocks = SHELL.findall(text)
    assert len(blocks) == len(re.findall(r"^\s+shell:$", text, re.MULTILINE))
    assert not [found for block in blocks for found in NEEDS_QUOTES.findall(block)]


def test_names_with_shell_code_are_names(tmp_path) -> None:
    folder = link_checkout(tmp_path / f"a {INJECTION}")
    shutil.copytree(ROOT / "workflow/resources/bases/llama2", folder / INJECTION)
    overlay = {
        "run": "quoted",
        "models.llama2.base": INJECTION,
        "models.llama2.label": INJECTION,
        "benchmarks.gsm8k.label": INJECTION + "1",
        "strategies.railcap.label": INJECTION,
        "benchmarks.gsm8k.stop": [INJECTION],
    }
    (folder / "overlay.yaml").write_text(yaml.safe_dump(nested(overlay)))
    process = snakemake(
        *("--profile", "profiles/quick", "--no-hooks"),
        *("--configfile", "profiles/quick/quick.yaml"),
        *("overlay.yaml", "--", "results/quoted/llama2/clean_gsm8k/training/data"),
        workdir=folder,
    )
    assert process.returncode == 0, process.stdout + process.stderr
    assert (folder / "results/quoted/llama2/clean_gsm8k/training/data").is_dir()
    assert not list(tmp_path.rglob("pwned"))
