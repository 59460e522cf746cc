"""Planning and preflight start quickly: they load no deep-learning library."""

import os
import subprocess
import sys

import pytest

from helpers.configurations import QUICK
from helpers.paths import ROOT

HEAVY = {"torch", "transformers", "matplotlib", "lm_eval"}
PLAN = "from zerogap.cli import main; main(['plan'])"
PREFLIGHT = (
    "from zerogap.config import load; from zerogap.pipeline.preflight import all_checks; "
    f"all_checks(load({[str(path) for path in QUICK]}))"
)


@pytest.mark.parametrize("code", [PLAN, PREFLIGHT], ids=["plan", "preflight"])
def test_no_deep_learning_library_is_loaded(code):
    code = f"import sys; {code}; print('modules:', *sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "workflow")},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = set(process.stdout.split("modules:")[1].split())
    assert "zerogap.pipeline.planning" in modules
    assert not modules & HEAVY
