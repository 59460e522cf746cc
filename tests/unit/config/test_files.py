from pathlib import Path

import pytest

from helpers.paths import ROOT
from zerogap.config.files import check_overlays
from zerogap.errors import InputError

QUICK = ROOT / "profiles/quick/quick.yaml"
BASE = "config.yaml"


@pytest.mark.parametrize(
    "arguments", [["--profile", "profiles/quick"], ["--profile=profiles/quick", "table_main"]]
)
def test_a_profile_without_its_scale_is_an_error_that_gives_the_option(arguments, monkeypatch):
    monkeypatch.chdir(ROOT)
    with pytest.raises(InputError, match=r"give both: --configfile \S+/quick.yaml mine\.yaml$"):
        check_overlays(arguments, [ROOT / "mine.yaml", BASE])
    check_overlays(arguments, [QUICK, ROOT / "mine.yaml", BASE])
    check_overlays(arguments, [Path("profiles/quick/quick.yaml"), BASE])


@pytest.mark.parametrize(
    ("profile", "files"),
    [
        ("profiles/smollm2", ["profiles/smollm2/smollm2.yaml", "profiles/smollm2/gsm8k.yaml"]),
        ("slurm", ["mine.yaml"]),
        ("elsewhere", []),
    ],
)
def test_further_overlays_and_profiles_without_any_are_accepted(profile, files, monkeypatch):
    monkeypatch.chdir(ROOT)
    check_overlays(["--profile", profile], [*(ROOT / file for file in files), BASE])
