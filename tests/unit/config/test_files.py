from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap.config.files import check_overlays
from zerogap.errors import InputError

QUICK = ROOT / "profiles/quick/quick.yaml"
BASE = "config.yaml"


@pytest.fixture(autouse=True)
def _in_the_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize(
    "arguments", [["--profile", "profiles/quick"], ["--profile=profiles/quick", "table_main"]]
)
def test_a_profile_without_its_scale_is_an_error_that_gives_the_option(arguments):
    with pytest.raises(
        InputError, match=r"give both: --configfile profiles/quick/quick.yaml mine\.yaml$"
    ):
        check_overlays(arguments, [ROOT / "mine.yaml", BASE])
    check_overlays(arguments, [QUICK, ROOT / "mine.yaml", BASE])
    check_overlays(arguments, [Path("profiles/quick/quick.yaml"), BASE])


def test_other_overlays_of_a_profile_may_be_replaced():
    files = [ROOT / "profiles/smollm2/smollm2.yaml", ROOT / "profiles/smollm2/gsm8k.yaml", BASE]
    check_overlays(["--profile", "profiles/smollm2"], files)


def test_profiles_without_overlays_and_other_profiles_are_accepted():
    check_overlays(["--profile", "slurm"], [ROOT / "mine.yaml", BASE])
    check_overlays(["--profile", "elsewhere"], [BASE])
    check_overlays([], [BASE])
