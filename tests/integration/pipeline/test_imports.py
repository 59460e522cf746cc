"""Commands and jobs start quickly, because they load no library that they do not need."""

import os
import subprocess
import sys

from helpers.paths import ROOT

HEAVY = {"torch", "transformers", "matplotlib", "lm_eval"}
PLAN = "from zerogap.cli import main; main(['plan'])"
CATALOGUE = "import zerogap.pipeline.report.tables, zerogap.pipeline.report.figures"
PREFLIGHT = (
    "from zerogap import config, pipeline; from zerogap.pipeline import preflight; "
    "preflight.run_checks(config.load(['config.yaml', 'profiles/quick/quick.yaml']))"
)
DECODE = "import script_helpers, zerogap.sampling.jobs, zerogap.engine.loading"


def loaded_modules(code):
    code = f"import sys; {code}; print('modules:', *(n for n, m in sys.modules.items() if m))"
    folders = os.pathsep.join(str(ROOT / folder) for folder in ("workflow", "workflow/scripts"))
    process = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": folders},
        capture_output=True,
        text=True,
        check=True,
    )
    return set(process.stdout.split("modules:")[1].split())


def test_planning_loads_no_deep_learning_library():
    modules = loaded_modules(PLAN)
    assert "zerogap.pipeline.plan" in modules
    assert not modules & HEAVY


def test_the_checks_before_a_run_load_neither_torch_nor_transformers():
    assert not loaded_modules(PREFLIGHT) & HEAVY


def test_reading_the_catalogue_of_the_report_loads_neither_a_model_nor_matplotlib():
    assert not loaded_modules(CATALOGUE) & HEAVY


def test_a_job_that_decodes_does_not_load_scikit_learn():
    modules = loaded_modules(DECODE)
    assert "transformers.generation.candidate_generator" in modules  # would load it
    assert "sklearn" not in modules
