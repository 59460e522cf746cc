"""Planning starts quickly: it loads no deep-learning library."""

import os
import subprocess
import sys

from helpers.paths import ROOT

HEAVY = {"torch", "transformers", "matplotlib", "lm_eval"}
PLAN = "from zerogap.cli import main; main(['plan'])"


def test_no_deep_learning_library_is_loaded():
    code = f"import sys; {PLAN}; print('modules:', *sys.modules)"
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
