"""Targets on the command line."""

import pytest

from zerogap.errors import InputError
from zerogap.pipeline.target_names import check_targets

TARGETS = ["all", "table_main", "table_variants", "figure_loss"]


def test_targets_and_files_are_accepted():
    check_targets(["all", "table_main", "results/quick/llama2/base"], TARGETS)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tabel_main", "'tabel_main' is not a target; did you mean table_main, table_variants? "),
        ("nonsense", "'nonsense' is not a target; docs/workflow.md#targets lists all"),
    ],
)
def test_an_unknown_target_is_answered_with_the_nearest_names(name, message):
    with pytest.raises(InputError) as caught:
        check_targets(["all", name], TARGETS)
    assert str(caught.value).startswith(message)
