"""Training examples: questions and instructions as prompts and responses, checked id by id.

Training must see exactly the token ids that inference sees. LLaMA-Factory tokenises prompt and
response separately and adds no BOS token, whereas inference tokenises the prompt alone and lets the
tokenizer add what it adds. The examples are spelled so that the ids agree, or it is an error.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import pandas as pd

from zerogap.data.prompts import PromptTemplate
from zerogap.errors import InputError

if TYPE_CHECKING:  # importing transformers takes seconds
    from transformers import PreTrainedTokenizerBase

Example = dict[str, str]  # prompt, response
AFTER_RESPONSE = "\n\n"  # what LLaMA-Factory's `fewshot` template puts between response and EOS


def instruction_prompt(row: Mapping[str, str]) -> str:
    """An instruction as a prompt.

    The `fewshot` template joins its parts without a separator, so each ends with an empty line.

    Args:
        row: system (may be empty), question, response.
    """
    system = f"{row['system']}\n\n" if row["system"] else ""
    return f"{system}{row['question']}\n\n"


def instruction_pairs(rows: Iterable[Mapping[str, str]]) -> list[tuple[str, str]]:
    """(prompt, response) of each instruction."""
    return [(instruction_prompt(row), row["response"]) for row in rows]


def question_pairs(
    questions: pd.DataFrame,
    exemplars: Sequence[Mapping[str, str]],
    column: str,
    template: PromptTemplate,
) -> list[tuple[str, str]]:
    """(few-shot prompt, response) of each question.

    Args:
        questions: a `questions` table. Rationale and gold answer are always the original ones.
        exemplars: of the few-shot prompt.
        column: the column with the text of the question: "question", or "paraphrase" (PQ,
            appendix A.1).
        template: of the benchmark.
    """
    prefix = template.few_shot_prefix(exemplars)
    return [
        (template.prompt(prefix, text), template.response(rationale, gold))
        for text, rationale, gold in zip(
            questions[column], questions.rationale, questions.gold, strict=True
        )
    ]


def training_examples(
    pairs: Sequence[tuple[str, str]],
    tokenizer: "PreTrainedTokenizerBase",
    cutoff_len: int,
    *,
    truncate: bool = False,
) -> list[Example]:
    """The pairs as LLaMA-Factory's `fewshot` template must find them, each checked id by id.

    Args:
        pairs: prompts and responses as at inference.
        tokenizer: the tokenizer of the model that is trained.
        cutoff_len: maximum length of an example in tokens.
        truncate: accept examples longer than `cutoff_len` tokens, which LLaMA-Factory truncates;
            their number is printed.

    Raises:
        InputError: training would see other ids than inference, or an example that must not be
            truncated is too long.
    """
    examples, num_truncated = [], 0
    for index, (prompt, response) in enumerate(pairs):
        training_text, response_text, num_tokens = training_example(tokenizer, prompt, response)
        if num_tokens > cutoff_len and truncate:
            num_truncated += 1
        elif num_tokens > cutoff_len:
            raise InputError(
                f"training example {index} has {num_tokens} tokens, but training.cutoff_len is "
                f"{cutoff_len}; raise it or use fewer shots ({response[:60]!r}…)"
            )
        examples.append({"prompt": training_text, "response": response_text})
    if num_truncated:
        print(f"{num_truncated} of {len(examples)} examples are truncated to {cutoff_len} tokens")
    return examples


def training_prompt(tokenizer: "PreTrainedTokenizerBase", prompt: str) -> str:
    """The prompt as it must be written for LLaMA-Factory's `fewshot` template.

    The template adds no BOS token. If the tokenizer adds one at inference, its text is put in
    front, and tokenising the text gives the token again. Llama 2's tokenizer puts a space before a
    text, but not after a BOS that is part of the text; there the space is written out.
    """
    inference_ids = tokenizer(prompt)["input_ids"]
    bos = tokenizer.bos_token
    if not bos or inference_ids[0] != tokenizer.bos_token_id:
        return prompt
    for spelling in (bos + prompt, f"{bos} {prompt}"):
        if tokenizer(spelling, add_special_tokens=False)["input_ids"] == inference_ids:
            return spelling
    return str(bos) + prompt


def training_example(
    tokenizer: "PreTrainedTokenizerBase", prompt: str, response: str
) -> tuple[str, str, int]:
    """An example spelled so that training sees the ids of inference.

    Training tokenises prompt and response separately; the concatenated ids must equal those of the
    whole text. A sentencepiece tokenizer puts a space before the response by itself and a
    byte-level one does not, so the response is tried with and without its leading space. After a
    line break (instructions) the whole text may have that space too, because such a tokenizer
    cannot begin a response without it, and the ids of the whole text may differ at the break.

    Args:
        tokenizer: the tokenizer of the model that is trained.
        prompt: the prompt as at inference.
        response: the response, with the space that separates it from the prompt, if any.

    Returns:
        The prompt and the response to write, and the example's number of tokens including EOS.

    Raises:
        InputError: no spelling agrees; the message has both lists of ids.
    """
    inference_ids = tokenizer(prompt)["input_ids"]
    training_text = training_prompt(tokenizer, prompt)
    prompt_ids = tokenizer(training_text, add_special_tokens=False)["input_ids"]
    spellings = [(response, response), (response, response.removeprefix(" "))]
    if prompt.endswith("\n"):
        spellings.append((f" {response}", response))
    for continuation, spelling in spellings:
        whole_ids = tokenizer(prompt + continuation + AFTER_RESPONSE)["input_ids"]
        text = spelling + AFTER_RESPONSE
        response_ids = tokenizer(text, add_special_tokens=False)["input_ids"]
        if prompt_ids == inference_ids and prompt_ids + response_ids == whole_ids:
            return training_text, spelling, len(whole_ids) + 1
    if prompt.endswith("\n") and prompt_ids == inference_ids:
        # GPT-2's way of splitting text merges line breaks only if no word follows. Inference
        # tokenises the prompt alone, so it sees the same ids as training.
        response_ids = tokenizer(response + AFTER_RESPONSE, add_special_tokens=False)["input_ids"]
        return training_text, response, len(prompt_ids) + len(response_ids) + 1
    raise InputError(
        "the tokenizer gives a training example other ids than inference sees; use a model with "
        "another tokenizer\n"
        f"  training, prompt:    {prompt_ids}\n  inference, prompt:   {inference_ids}\n"
        f"  training, response:  {response_ids}\n  inference, all:      {whole_ids}\n"
        f"  prompt: {prompt!r}\n  response: {response!r}"
    )
