"""The functions on rails that strategies from outside use."""

import torch

import zerogap
from zerogap import Rows


def rows_with(*tokens: list[int], question: list[int]) -> Rows:
    """A batch of rows with these generated tokens, padded as the sampler pads them."""
    padded = torch.full((len(tokens), 5), -1)
    for row, generated in zip(padded, tokens, strict=True):
        row[: len(generated)] = torch.tensor(generated)
    steps = torch.tensor([len(generated) for generated in tokens])
    return Rows(torch.tensor(question), steps, padded)


def test_last_tokens_are_those_before_the_padding():
    rows = rows_with([1, 2, 3], [4], question=[0, 0])
    assert zerogap.last_tokens(rows, 2).tolist() == [[2, 3], [-1, 4]]


def test_no_trajectories_are_padded_to_an_empty_tensor():
    assert zerogap.pad_trajectories([], 4).shape == (0, 5)


def test_rail_tokens_continue_the_trajectory_of_the_rows_own_question():
    trajectories = zerogap.pad_trajectories([[1, 2, 3, 1, 2, 4], [2, 3, 9]], 2)
    rows = rows_with([7, 2, 3], [7, 2, 3], [1, 2], [2], [4, 4], question=[0, 1, 0, 0, 0])
    # Of [1, 2], which occurs twice, the last successor counts; one token is too few for n = 2.
    assert zerogap.rail_tokens(trajectories, rows, 2).tolist() == [1, 9, 4, -1, -1]
    assert zerogap.rail_tokens(trajectories, rows, 2, "first").tolist() == [1, 9, 3, -1, -1]
