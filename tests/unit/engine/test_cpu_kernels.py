import ctypes
import threading
from pathlib import Path

import numba
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.tiny_models import model
from zerogap.engine import cpu_kernels
from zerogap.engine.drawing import draw
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder


@pytest.fixture
def threads():
    """Sets how many PyTorch has; afterwards as before."""
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def attention(rows, heads, groups, prefix, dtype, seed=0):
    """What `cpu_kernels.attend` takes, and what it must give: one softmax over all keys, in float64."""
    torch.manual_seed(seed)
    size, width, cells = 40, 19, rows + 3
    query, of_prefix, of_question = (
        torch.randn(count, heads * groups, size).to(dtype) for count in (rows, rows, cells)
    )
    key, value = (torch.randn(rows + 2, width, heads, size).to(dtype) for _ in range(2))
    known, cell = torch.randint(1, width + 1, (rows,)), torch.randperm(cells)[:rows]
    kind = torch.promote_types(dtype, torch.float32)
    to_prefix, to_question = (torch.randn(n, heads * groups, dtype=kind) for n in (rows, cells))
    if not prefix:
        to_prefix.fill_(float("-inf"))
    expected = []
    for row in range(rows):
        own_key, own_value = (
            part[row, : known[row]].double().repeat_interleave(groups, 1) for part in (key, value)
        )
        scores = torch.einsum("hd,thd->ht", query[row].double(), own_key)
        others = torch.stack([to_prefix[row], to_question[cell[row]]], 1).double()
        weights = torch.cat([scores, others], 1).softmax(-1)
        values = torch.cat(
            [own_value, torch.stack([of_prefix[row], of_question[cell[row]]]).double()]
        )
        expected.append(torch.einsum("ht,thd->hd", weights, values))
    arguments = query, (key, value), known, (of_prefix, to_prefix), (of_question, to_question), cell
    return arguments, torch.stack(expected)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
@pytest.mark.parametrize(("rows", "heads", "groups"), [(1, 3, 1), (70, 2, 3)])
@pytest.mark.parametrize("prefix", [True, False])
def test_attention_is_one_softmax_over_all_keys(rows, heads, groups, prefix, dtype):
    arguments, expected = attention(rows, heads, groups, prefix, dtype)
    found = cpu_kernels.attend(*arguments)
    assert found.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
    near = 1e-12 if dtype == torch.float64 else 2e-6
    torch.testing.assert_close(found.double(), expected, rtol=near, atol=near)


def test_neither_threads_nor_other_rows_change_a_rows_result(threads, monkeypatch):
    arguments, _ = attention(100, 2, 2, True, torch.bfloat16)
    logits, uniform = torch.randn(100, 300).bfloat16(), torch.rand(100, dtype=torch.float64)
    row = torch.randperm(100)
    threads(1)
    whole, drawn = cpu_kernels.attend(*arguments), cpu_kernels.draw(logits, uniform, 0.7, row)
    for count in (2, 3, 5):
        threads(count)
        assert cpu_kernels.attend(*arguments).equal(whole)
        assert cpu_kernels.draw(logits, uniform, 0.7, row).equal(drawn)
    query, own, known, (of_prefix, to_prefix), question, cell = arguments
    some = torch.tensor([41, 7, 99])
    own = tuple(part[some] for part in own)
    prefix = of_prefix[some], to_prefix[some]
    few = cpu_kernels.attend(query[some], own, known[some], prefix, question, cell[some])
    assert few.equal(whole[some])
    monkeypatch.setattr(cpu_kernels, "_team", lambda: None)  # as where PyTorch has other threads
    assert cpu_kernels.attend(*arguments).equal(whole)


@pytest.fixture
def team():
    """How many threads PyTorch's team has, if kernels can use it."""
    if cpu_kernels._team() is None:
        pytest.skip("this PyTorch has its threads from another library than GNU OpenMP")
    library = ctypes.CDLL(str(Path(torch.__file__).parent / "lib/libtorch_cpu.so"))
    return library.omp_get_max_threads


def test_the_threads_are_pytorchs(threads, team):
    threads(3)
    assert team() == 3


@pytest.mark.parametrize("where", ["caller", "worker"])
def test_what_is_raised_in_a_thread_reaches_the_caller(where, threads, team):
    threads(2)
    both, done = threading.Barrier(2, timeout=30), []

    def interrupted(first, last):
        if last == 0:
            return
        if first < 2 * cpu_kernels._LEAST:
            both.wait()  # each thread has a piece
        if (threading.current_thread() is threading.main_thread()) == (where == "caller"):
            raise KeyboardInterrupt
        done.append(first)

    with pytest.raises(KeyboardInterrupt):
        cpu_kernels._by_rows(interrupted, 6 * cpu_kernels._LEAST)
    assert done


def test_an_interrupt_that_is_dropped_on_the_way_is_raised(threads, team, monkeypatch):
    """As when a signal comes where ctypes calls Python: the caller's part does not begin."""
    threads(2)
    monkeypatch.setattr(cpu_kernels, "_team", lambda: lambda work, *_: None)
    with pytest.raises(KeyboardInterrupt):
        cpu_kernels._by_rows(lambda first, last: None, 100)


def test_where_nothing_can_be_kept_they_are_compiled_anew(monkeypatch):
    monkeypatch.setattr(numba.core.caching.CompileResultCacheImpl, "_locator_classes", [])
    with pytest.raises(RuntimeError, match="cannot cache"):
        numba.njit(cache=True)(lambda x: x + 1)
    assert cpu_kernels._compiled(lambda x: x + 1)(1) == 2


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 400), st.floats(0.2, 30), st.floats(0.3, 2))
def test_tokens_are_those_of_the_plain_way(seed, size, spread, temperature):
    generator = torch.Generator().manual_seed(seed)
    logits = (torch.randn(9, size, generator=generator) * spread).bfloat16()
    logits[torch.rand(9, size, generator=generator) < 0.2] = float("-inf")
    logits[:, 0] = 0
    uniform = torch.rand(40, generator=generator, dtype=torch.float64)
    row = torch.randint(9, (40,), generator=generator)
    found = draw(logits, uniform, temperature, row=row)
    expected = draw(logits.float(), uniform, temperature, row=row)
    # A uniform may fall between the roundings of a boundary, one time in a hundred thousand.
    assert (found != expected).sum() <= 1
    for one, other, at, number in zip(found, expected, row, uniform, strict=True):
        if one != other:
            reached = (logits[at].double() / temperature).softmax(-1).cumsum(-1)
            assert (reached - number).abs().min() < 1e-5


def test_logits_that_are_no_numbers_draw_no_token():
    nan, inf = float("nan"), float("inf")
    logits = torch.zeros(6, 130).bfloat16()
    logits[0, 70], logits[1, 70], logits[2, 70] = nan, -torch.tensor(nan), inf
    logits[3], logits[4] = -inf, -inf
    logits[4, 99] = 3
    drawn = draw(logits, torch.full((6,), 0.5, dtype=torch.float64), 1.0)
    assert drawn[:5].tolist() == [-1, -1, -1, -1, 99]
    assert drawn[5] in (64, 65)


@pytest.mark.parametrize("uniform", [0.0, 1 - 2**-53])
def test_the_ends_of_the_distribution_are_tokens_of_some_weight(uniform):
    logits = torch.full((1, 200), float("-inf")).bfloat16()
    logits[0, [3, 70, 130]] = torch.tensor([1.0, 2.0, -20.0]).bfloat16()
    (token,) = draw(logits, torch.tensor([uniform], dtype=torch.float64), 1.0)
    assert token == (130 if uniform else 3)


def test_the_exponential():
    @numba.njit
    def alone(values):
        return np.array([cpu_kernels._exp(x) for x in values])

    @numba.njit(fastmath=cpu_kernels._SUMS)
    def many(values, scale):  # in a loop that is vectorised, beside another product
        found = np.empty_like(values)
        for at in range(len(values)):
            found[at] = cpu_kernels._exp(values[at] * scale)
        return found

    steps = np.linspace(-87, 0, 10_001, dtype=np.float32)
    np.testing.assert_allclose(alone(steps), np.exp(steps.astype(np.float64)), rtol=3e-7)
    scale = np.float32(1 / 0.7)
    scaled = (steps * np.float32(0.7)) * scale
    np.testing.assert_allclose(
        many(steps * np.float32(0.7), scale), np.exp(scaled.astype(np.float64)), rtol=3e-7
    )
    edges = alone(np.array([0, -88, -np.inf, np.nan], dtype=np.float32))
    np.testing.assert_array_equal(edges, [1, 0, 0, np.nan])


@pytest.mark.parametrize(("dtype", "calls"), [("float32", 0), ("float16", 0), ("bfloat16", 3)])
def test_steps_in_bfloat16_take_them(dtype, calls, monkeypatch):
    """Once for each of three layers."""
    taken, attend = [], cpu_kernels.attend
    monkeypatch.setattr(
        cpu_kernels, "attend", lambda *arguments: taken.append(0) or attend(*arguments)
    )
    cached = SharedPromptDecoder(model("llama").to(getattr(torch, dtype)))
    cached.prefill_prefix([1, 2, 3])
    cached.prefill_prompts([[4]])
    cached.step(torch.tensor([5]))
    assert len(taken) == calls
