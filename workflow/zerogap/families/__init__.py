"""What training has to know of a model family, and one training example checked id by id."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from zerogap.errors import InputError

if TYPE_CHECKING:  # merging and training start seconds earlier without it
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True)
class Family:
    """Module names inside a decoder block.

    Attributes:
        lora_targets: the block's linear layers. Never the language-model head (GPT-NeoX calls it
            `embed_out`, and LLaMA-Factory's `all` would take it), nor Gemma-4's `per_layer_*`
            projections.
        down_projection: the FFN's last linear layer; its input are the neurons.
    """

    lora_targets: tuple[str, ...]
    down_projection: str


_GATED = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")

FAMILIES = {
    "llama": Family(_GATED, "mlp.down_proj"),
    "gemma4": Family(_GATED, "mlp.down_proj"),
    "gpt_neox": Family(
        ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"), "mlp.dense_4h_to_h"
    ),
}

AFTER_RESPONSE = "\n\n"  # what LLaMA-Factory's `fewshot` template puts between response and EOS


def training_prompt(tokenizer: "PreTrainedTokenizerBase", prompt: str) -> str:
    """The prompt as it has to be written for LLaMA-Factory's `fewshot` template.

    That template adds no BOS token. Where the tokenizer adds one by itself at inference, its text
    is put in front, which the template's tokenisation turns back into the one token. Llama-2's
    tokenizer begins a text with a space, but not what follows a written BOS: there it is written.
    """
    asked = tokenizer(prompt)["input_ids"]
    bos = tokenizer.bos_token
    if not bos or asked[0] != tokenizer.bos_token_id:
        return prompt
    for spelling in (bos + prompt, f"{bos} {prompt}"):
        if tokenizer(spelling, add_special_tokens=False)["input_ids"] == asked:
            return spelling
    return bos + prompt


def training_example(
    tokenizer: "PreTrainedTokenizerBase", prompt: str, response: str
) -> tuple[str, str, int]:
    """An example so written that training sees the ids of inference, checked id by id.

    Training tokenises prompt and response apart, inference the prompt alone, and the response has
    to continue it. A sentencepiece tokenizer puts a space before the response by itself, a
    byte-level one does not: the spelling is taken whose ids agree with the text tokenised whole.
    After a line break (instructions) the whole may have that space too: such a tokenizer cannot
    begin a response without.

    Args:
        prompt: as at inference.
        response: with the space that follows the prompt, if one does.

    Returns:
        The prompt and the response to be written, and the example's tokens, EOS included.

    Raises:
        InputError: no spelling agrees; with both lists of ids.
    """
    asked = tokenizer(prompt)["input_ids"]
    written = training_prompt(tokenizer, prompt)
    prompt_ids = tokenizer(written, add_special_tokens=False)["input_ids"]
    spellings = [(response, response), (response, response.removeprefix(" "))]
    if prompt.endswith("\n"):
        spellings.append((f" {response}", response))
    for continued, spelling in spellings:
        whole = tokenizer(prompt + continued + AFTER_RESPONSE)["input_ids"]
        text = spelling + AFTER_RESPONSE
        response_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if prompt_ids == asked and prompt_ids + response_ids == whole:
            return written, spelling, len(whole) + 1
    raise InputError(
        "this tokenizer gives a training example other ids than inference sees:\n"
        f"  training, prompt:    {prompt_ids}\n  inference, prompt:   {asked}\n"
        f"  training, response:  {response_ids}\n  inference, all:      {whole}\n"
        f"  prompt: {prompt!r}\n  response: {response!r}"
    )
