"""The scale for one GPU with 24 GB: planned, not run."""

import pytest

from helpers.configurations import PAPER
from helpers.paths import ROOT
from zerogap.config import load
from zerogap.pipeline import planning
from zerogap.pipeline.model_sizes import model_size
from zerogap.pipeline.preflight.machine import check_gpu_memory
from zerogap.pipeline.preflight.result import OK
from zerogap.pipeline.rates import GPUS, Rates

pytestmark = pytest.mark.usefixtures("in_checkout")
NIGHT = 14  # hours
GPU = GPUS["rtx-4090"]


@pytest.fixture
def workstation(monkeypatch):
    monkeypatch.setattr("huggingface_hub.HfApi", None)  # the hub cannot be asked
    return load([*PAPER, ROOT / "profiles/workstation/workstation.yaml"])


def test_the_protocol_is_that_of_the_paper(workstation):
    paper = load(PAPER)
    benchmark = workstation.benchmarks["gsm8k"]
    assert benchmark == paper.benchmarks["gsm8k"]
    assert workstation.sampling == paper.sampling
    assert workstation.all_strategies == paper.all_strategies
    assert len(workstation.models) == 3
    assert {entry.family for entry in workstation.models.values()} == {"auto"}


def test_it_fits_one_24_gb_gpu_in_a_night(workstation):
    sizes = {model: model_size(workstation, model) for model in workstation.models}
    assert all(4e8 < size.parameters < 1.5e9 for size in sizes.values())
    plan = planning.plan(
        workstation, sizes, planning.texts_by_owner(workstation, sizes), Rates(gpu=GPU)
    )
    assert set(plan[plan.tokens > 0].rate) == {"assumed"}
    assert 1 < plan.hours.sum() < NIGHT
    results = check_gpu_memory(workstation, sizes, [GPU.memory])
    assert [result.status for result in results] == [OK] * 3
