import pytest
import torch
import transformers

from helpers.neuron_tables import write_neurons
from helpers.tiny_models import model, traced
from zerogap.engine.decoder import Capacity
from zerogap.engine.patched_decoder import PatchedDecoder
from zerogap.engine.shared_prompt_decoder import SharedPromptDecoder
from zerogap.errors import InputError
from zerogap.strategies import shortcut
from zerogap.strategies.base import Context

WIDTH = 48  # neurons per layer of the tiny models


@pytest.fixture
def wrapping(tmp_path):
    """What wraps decoders to patch neurons with those of a base model."""
    model("llama", 2).save_pretrained(tmp_path / "base")

    def wrapping(layer=(0, 0, 1), neuron=(3, 4, 7), selected=(True, False, True)):
        file = write_neurons(tmp_path / "neurons.parquet", layer, neuron, selected)
        context = Context([], [], base_model=tmp_path / "base", neurons=file)
        return shortcut.Shortcut().prepare(context).wrap_decoder

    return wrapping


def logits(decoder):
    decoder.prefill_prefix([5, 6, 7])
    return decoder.prefill_prompts([[9, 10], [11]])


def test_shortcut_patches_the_selected_neurons_from_the_base_models_folder(wrapping):
    expected = PatchedDecoder(
        SharedPromptDecoder(model("llama", 1)),
        SharedPromptDecoder(model("llama", 2)),
        {0: torch.tensor([3]), 1: torch.tensor([7])},
    )
    patched = wrapping()(SharedPromptDecoder(model("llama", 1)))
    assert torch.equal(logits(patched), logits(expected))


def test_a_file_that_selects_no_neurons_is_an_error(tmp_path):
    file = write_neurons(tmp_path / "shard.parquet", 0, range(5), selected=False)
    with pytest.raises(InputError, match=r"shard.parquet: selects no neurons.* the merged file"):
        shortcut.selected_neurons(file)


@pytest.mark.parametrize(("layer", "neuron"), [(99, 0), (1, WIDTH)])
def test_neurons_of_another_model_are_refused_before_the_model_is_changed(layer, neuron, wrapping):
    contaminated = SharedPromptDecoder(model("llama", 1))
    with pytest.raises(InputError, match=f"selects neuron {neuron} of layer {layer}, which"):
        wrapping([0, layer], [0, neuron], True)(contaminated)
    assert torch.equal(logits(contaminated), logits(SharedPromptDecoder(model("llama", 1))))


def test_the_storage_of_the_contaminated_model_is_free_while_the_base_model_loads(
    wrapping, monkeypatch
):
    contaminated = SharedPromptDecoder(model("llama", 1), make_capture=lambda: traced)
    contaminated.reserve(
        Capacity(
            max_rows=4, samples_per_prompt=2, max_new_tokens=8, max_prompts=2, max_prompt_len=2
        )
    )
    from_pretrained = transformers.AutoModelForCausalLM.from_pretrained
    capacities = []

    def load(*arguments, **options):
        capacities.append(contaminated._capacity)
        return from_pretrained(*arguments, **options)

    monkeypatch.setattr(transformers.AutoModelForCausalLM, "from_pretrained", load)
    wrapping()(contaminated)
    assert capacities == [None]
