import math

import pytest

from zerogap.families import ModelSize
from zerogap.pipeline.rates import ASSUMED, DEFAULT_RATES, GPUS, MEASURED, STATED, Rates, Work

SEVEN = ModelSize(7 * 10**9, 0, (1,) * 10, 0)
FOURTEEN = ModelSize(14 * 10**9, 0, (1,) * 10, 0)
TINY = ModelSize(10**6, 0, (1,) * 10, 0)
SAMPLING = Work({"prefill": 0, "sampling": 1000})


def test_rates_scale_with_parameters_unless_a_model_has_its_own():
    rates = Rates(sampling={"": 1000, "mine": 50})
    assert rates.rate("sampling", "mine", 10**12) == 50
    assert rates.rate("sampling", "other", 14 * 10**9) == 500
    assert rates.rate("training", "other", 7 * 10**9) == DEFAULT_RATES["training"]


def test_a_model_too_small_to_scale_needs_a_stated_or_measured_rate():
    assert math.isnan(Rates().seconds(SAMPLING, "stage", "tiny", TINY))
    stated = Rates(sampling={"tiny": 100})
    assert stated.seconds(SAMPLING, "stage", "tiny", TINY) == 10
    measured = Rates(speeds={("stage", "tiny"): 0.5})
    nominal = Rates().nominal_seconds(SAMPLING, "tiny", TINY)
    assert measured.seconds(SAMPLING, "stage", "tiny", TINY) == pytest.approx(2 * nominal)


def test_a_rate_stated_for_all_models_is_not_scaled_to_a_tiny_one():
    rates = Rates(sampling={"": 100})
    assert rates.source(SAMPLING, "stage", "tiny", TINY) == ""
    assert math.isnan(rates.seconds(SAMPLING, "stage", "tiny", TINY))
    assert rates.source(SAMPLING, "stage", "model", SEVEN) == STATED


def test_stated_rates_come_before_measured_and_these_before_assumed():
    speeds = {("stage", "model"): 3.0}
    for rates, source in (
        (Rates(sampling={"model": 5}, speeds=speeds), STATED),
        (Rates(sampling={"": 5}, speeds=speeds), STATED),
        (Rates(prefill={"model": 5}, speeds=speeds), MEASURED),
        (Rates(speeds=speeds), MEASURED),
        (Rates(speeds={("other stage", "model"): 3.0}), ASSUMED),
    ):
        assert rates.source(SAMPLING, "stage", "model", SEVEN) == source
    assert Rates().source(SAMPLING, "stage", "model", TINY) == ""


def test_a_measured_speed_does_not_depend_on_the_assumed_gpu():
    speeds = {("stage", "model"): 3.0}
    seconds = {
        Rates(speeds=speeds, gpu=gpu).seconds(SAMPLING, "stage", "model", SEVEN)
        for gpu in GPUS.values()
    }
    assert len(seconds) == 1


def test_assumed_rates_are_those_of_the_gpu():
    rates = Rates(gpu=GPUS["rtx-4090"])
    assert rates.rate("sampling", "m", 7 * 10**9) == pytest.approx(0.49 * 8000)
    assert rates.rate("training", "m", 7 * 10**9) == pytest.approx(0.53 * 3000)


def test_a_step_of_few_rows_takes_twice_as_long_as_reading_the_weights():
    few = Work(decode_steps=100, decoded=1000, batch_rows=10)
    assert Rates().nominal_seconds(few, "m", SEVEN) == pytest.approx(100 * 7e9 * 2.1e-12)
    many = Work(decode_steps=100, decoded=50_000, batch_rows=500)
    assert Rates().nominal_seconds(many, "m", SEVEN) == pytest.approx(50_000 / 5000)
    assert Rates().nominal_seconds(many, "m", FOURTEEN) == pytest.approx(50_000 / 2500)
