"""Which steps of responses are on the greedy trajectory: RailCap's matching, replayed on samples.

A step of a response is *on the rail* if the last n tokens equal an n-gram window of the greedy
trajectory of the same question. There the trajectory names a next token, the rail token (paper,
Algorithm 1; :mod:`zerogap.strategies.railcap`). With the paper's parameters RailCap intervenes at
these steps and at no others, so its interventions can be counted from its responses; a variant that
leaves out some of them intervenes less often than is counted. Where the model does not prefer the
rail token anyway, an intervention changes nothing, which the responses do not show.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence

import pandas as pd

from zerogap.data.token_kinds import KINDS
from zerogap.errors import InputError
from zerogap.io import parquet

Tokens = Sequence[int]


def rail_steps(trajectory: Tokens, response: Tokens, n: int) -> Iterator[tuple[int, int, int]]:
    """Every step of a response on the rail: (step, rail token, token that was drawn).

    Args:
        trajectory: the greedy trajectory, end token included.
        response: the tokens of one response, end token included.
        n: the n-gram threshold.
    """
    successors = {  # of a window that occurs twice, the last occurrence counts
        tuple(trajectory[k : k + n]): trajectory[k + n] for k in range(len(trajectory) - n)
    }
    for step in range(n, len(response)):
        rail_token = successors.get(tuple(response[step - n : step]))
        if rail_token is not None:
            yield step, rail_token, response[step]


def tokens_on_rail(trajectory: Tokens, response: Tokens, n: int) -> list[bool]:
    """Which tokens of a response are on the rail: those that match, and the rail tokens drawn."""
    on_rail = [False] * len(response)
    for step, rail_token, token in rail_steps(trajectory, response, n):
        end = step + 1 if token == rail_token else step
        on_rail[step - n : end] = [True] * (end - step + n)
    return on_rail


def replay(
    responses: str,
    samples: pd.DataFrame,
    greedy: pd.DataFrame,
    leaked: pd.Series,
    n: int,
    kind: Callable[[int], str],
) -> pd.DataFrame:
    """The `rail` table of one set of responses.

    Args:
        responses: what the responses are called: a strategy, or "clean".
        samples: `samples` table.
        greedy: `greedy` table of the model that the responses were sampled from.
        leaked: whether each question is leaked, by question id.
        n: the n-gram threshold.
        kind: token id to kind (:func:`zerogap.data.token_kinds.token_kinds`).

    Raises:
        InputError: a sampled question has no trajectory.
    """
    trajectories = greedy.set_index("question_id")
    rows = []
    for question_id, group in samples.groupby("question_id", sort=False):
        if question_id not in trajectories.index:
            raise InputError(f"samples: question {question_id!r} is not in the greedy table")
        trajectory = trajectories.loc[question_id]
        tokens = [int(token) for token in trajectory.token_ids]
        # Responses to a memorised question repeat: each distinct one is replayed once.
        distinct = Counter(tuple(map(int, token_ids)) for token_ids in group["token_ids"])
        rail, drawn = Counter[str](), Counter[str]()
        for response, count in distinct.items():
            for _, rail_token, token in rail_steps(tokens, response, n):
                rail[kind(rail_token)] += count
                drawn[kind(rail_token)] += count * (token == rail_token)
        rows.append(
            {
                "responses": responses,
                "question_id": question_id,
                "leaked": leaked[question_id],
                "n_responses": distinct.total(),
                "n_distinct": len(distinct),
                "n_steps": sum(len(response) * count for response, count in distinct.items()),
                **{f"rail_{name}": rail[name] for name in KINDS},
                **{f"drawn_{name}": drawn[name] for name in KINDS},
                "greedy_steps": len(trajectory.entropy),
                "greedy_entropy": float(sum(trajectory.entropy)),
            }
        )
    return pd.DataFrame(rows, columns=parquet.CONTRACTS["rail"].names)
