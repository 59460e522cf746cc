import pytest

from zerogap.errors import InputError
from zerogap.evaluation.strategies import named_strategies
from zerogap.strategies.identity import Identity
from zerogap.strategies.railcap import RailCap
from zerogap.strategies.ted import TED


def named(*names):
    return named_strategies(names, None, None)


def test_names_are_listed_or_separated_by_commas_and_identity_comes_first():
    assert named("railcap") == {"identity": Identity(), "railcap": RailCap()}
    assert list(named("ted", "identity")) == ["identity", "ted"]
    assert named("identity,railcap, ted") == named("identity", "railcap", "ted")
    outside = named("zerogap.strategies.ted:TED")  # is called after its class
    assert outside["TED"] == TED()


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["railcapp"], "'railcapp' must be one of identity, ted, shortcut"),
        (["zerogap.strategies.ted:TED", "zerogap.other:TED"], "the name 'TED' is taken"),
        (["shortcut"], "shortcut needs the base model"),
    ],
)
def test_strategies_that_cannot_be_built_are_errors(names, message):
    with pytest.raises(InputError, match=message):
        named(*names)
