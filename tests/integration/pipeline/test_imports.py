"""Commands and jobs start quickly, because they load no library that they do not need."""

import pytest

from helpers.scripts import python

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
    return set(python("-c", code).stdout.split("modules:")[1].split())


@pytest.mark.parametrize("code", [PLAN, PREFLIGHT, CATALOGUE], ids=["plan", "checks", "catalogue"])
def test_what_comes_before_the_jobs_loads_no_deep_learning_library(code):
    assert not loaded_modules(code) & HEAVY


def test_a_job_that_decodes_does_not_load_scikit_learn():
    modules = loaded_modules(DECODE)
    assert "transformers.generation.candidate_generator" in modules  # would load it
    assert "sklearn" not in modules
