"""The claims of the paper, in its order."""

from zerogap.reporting.claims.metric_claims import METRIC_CLAIMS
from zerogap.reporting.claims.strategy_claims import STRATEGY_CLAIMS

CLAIMS = (*METRIC_CLAIMS, *STRATEGY_CLAIMS)
