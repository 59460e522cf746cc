import pytest

from zerogap.errors import InputError
from zerogap.evaluation.strategies import named_strategies
from zerogap.strategies.identity import Identity
from zerogap.strategies.railcap import RailCap
from zerogap.strategies.ted import TED


def named(*names, base_model=None, neurons=None):
    return named_strategies(names, base_model, neurons)


def test_identity_comes_first_even_if_it_is_not_named():
    assert named("railcap") == {"identity": Identity(), "railcap": RailCap()}
    assert list(named("ted", "identity")) == ["identity", "ted"]


def test_names_may_be_separated_by_commas():
    assert named("identity,railcap, ted") == named("identity", "railcap", "ted")


def test_a_class_from_outside_is_called_after_its_class():
    assert named("zerogap.strategies.ted:TED")["TED"] == TED()


def test_an_unknown_strategy_lists_the_known_ones():
    with pytest.raises(InputError, match="'railcapp' must be one of identity, ted, shortcut"):
        named("railcapp")


def test_two_classes_of_one_name_are_an_error():
    with pytest.raises(InputError, match="the name 'TED' is taken"):
        named("zerogap.strategies.ted:TED", "zerogap.other:TED")


def test_shortcut_without_base_model_and_neurons_is_an_error(tmp_path):
    with pytest.raises(InputError, match="shortcut needs the base model"):
        named("shortcut")
    with pytest.raises(InputError, match=r"--neurons: .*neurons\.parquet does not exist"):
        named("shortcut", base_model=tmp_path, neurons=tmp_path / "neurons.parquet")
