import pytest

from helpers import synthetic_run
from zerogap.reporting.metric_table import MetricTable


@pytest.fixture(scope="session")
def metrics_table():
    return synthetic_run.metrics_table()


@pytest.fixture(scope="session")
def values(metrics_table):
    return MetricTable([metrics_table])
