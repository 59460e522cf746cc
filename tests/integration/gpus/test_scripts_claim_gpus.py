"""Scripts on a GPU reserve it before torch initialises CUDA."""

import re

from helpers.paths import ROOT
from helpers.scripts import python
from helpers.workflow_rules import rule_texts

GPU_SCRIPTS = sorted(
    path.stem
    for path in (ROOT / "workflow/scripts").glob("*.py")
    if re.search(r"gpus\.claim\(|on_gpu=True", path.read_text()) and path.stem != "script_helpers"
)


def test_exactly_the_rules_with_gpus_run_scripts_that_claim_them():
    scripts = {
        re.search(r"scripts/(\w+)\.py", rule).group(1)
        for rule in rule_texts().values()
        if "gpu=" in rule
    }
    assert scripts == set(GPU_SCRIPTS)


def test_importing_a_script_does_not_initialise_cuda():
    """CUDA would not read CUDA_VISIBLE_DEVICES again."""
    code = f"""
import torch
def refuse(*_): raise AssertionError("CUDA is initialised at import")
torch.cuda.is_available = torch.cuda.device_count = torch.cuda._lazy_init = refuse
import {", ".join(GPU_SCRIPTS)}
"""
    done = python("-c", code)
    assert done.returncode == 0, done.stderr
