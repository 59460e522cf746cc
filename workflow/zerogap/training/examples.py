"""Training examples: questions and instructions as prompts and responses, checked id by id.

Training must see exactly the token ids that inference sees. LLaMA-Factory tokenises prompt and
response separately and adds no BOS token, whereas inference tokenises the prompt alone and lets the
tokenizer add what it adds. The examples are spelled so that the ids agree. For a question anything
else is an error. Instructions are never decoded, so that only their prompts must agree, and one
that does not is skipped.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pandas as pd

from zerogap.data.prompts import PromptTemplate
from zerogap.errors import InputError

if TYPE_CHECKING:  # importing transformers takes seconds
    from transformers import PreTrainedTokenizerBase

Example = dict[str, str]  # prompt, response
AFTER_RESPONSE = "\n\n"  # what LLaMA-Factory's `fewshot` template puts between response and EOS


def instruction_prompt(row: Mapping[str, str]) -> str:
    """An instruction (system, which may be empty, and question) as a prompt.

    The `fewshot` template joins its parts without a separator, so each ends with an empty line.
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

    `column` of the table has the text of the question: "question", or "paraphrase" (PQ, appendix
    A.1). Rationale and gold answer are always the original ones.
    """
    prefix = template.few_shot_prefix(exemplars)
    rows = zip(questions[column], questions.rationale, questions.gold, strict=True)
    return [
        (template.prompt(prefix, text), template.response(rationale, gold))
        for text, rationale, gold in rows
    ]


def question_examples(
    pairs: Sequence[tuple[str, str]], tokenizer: "PreTrainedTokenizerBase", cutoff_len: int
) -> list[Example]:
    """The questions as LLaMA-Factory's `fewshot` template must find them.

    The ids of prompt and response together must equal those of the whole text. A sentencepiece
    tokenizer puts a space before the response by itself and a byte-level one does not, so the
    response is tried with and without its leading space.

    `pairs` are prompts and responses as at inference.

    Raises:
        InputError: training and inference would encode one differently, or it has more than
            `cutoff_len` tokens, EOS included.
    """
    prompts = _training_prompts(tokenizer, [prompt for prompt, _ in pairs])
    whole_ids = _token_ids(tokenizer, [prompt + text + AFTER_RESPONSE for prompt, text in pairs])
    as_written = [text for _, text in pairs]
    spellings = [as_written, [text.removeprefix(" ") for text in as_written]]
    response_ids = [_response_ids(tokenizer, texts) for texts in spellings]
    examples = []
    for index, prompt in enumerate(prompts):
        for texts, ids in zip(spellings, response_ids, strict=True):
            if prompt.agrees and prompt.ids + ids[index] == whole_ids[index]:
                examples.append({"prompt": prompt.text, "response": texts[index]})
                break
        else:
            raise InputError(
                f"training example {index}: the tokenizer encodes it differently in training and "
                "at inference; use a model with another tokenizer\n"
                f"  training, prompt:    {prompt.ids}\n"
                f"  inference, prompt:   {prompt.inference_ids}\n"
                f"  training, response:  {response_ids[0][index]}\n"
                f"  inference, all:      {whole_ids[index]}\n"
                f"  prompt: {pairs[index][0]!r}\n  response: {pairs[index][1]!r}"
            )
        num_tokens = len(whole_ids[index]) + 1
        if num_tokens > cutoff_len:
            raise InputError(
                f"training example {index} has {num_tokens} tokens, but training.cutoff_len is "
                f"{cutoff_len}; raise it or use fewer shots ({pairs[index][1][:60]!r}…)"
            )
    return examples


def instruction_examples(
    pairs: Sequence[tuple[str, str]], tokenizer: "PreTrainedTokenizerBase", cutoff_len: int
) -> list[Example]:
    """The instructions as LLaMA-Factory's `fewshot` template must find them.

    The ids at the end of a prompt may differ from those of prompt and response in one text: GPT-2's
    way of splitting text, for one, merges line breaks only if no word follows. An instruction whose
    prompt has other ids than at inference is skipped; one that is longer than `cutoff_len` tokens
    is truncated by LLaMA-Factory. Both are printed.

    Raises:
        InputError: all instructions would be skipped.
    """
    prompts = _training_prompts(tokenizer, [prompt for prompt, _ in pairs])
    response_ids = _response_ids(tokenizer, [text for _, text in pairs])
    examples, num_truncated = [], 0
    for index, (prompt, (text, response)) in enumerate(zip(prompts, pairs, strict=True)):
        if prompt.agrees:
            num_truncated += len(prompt.ids) + len(response_ids[index]) + 1 > cutoff_len
            examples.append({"prompt": prompt.text, "response": response})
        else:
            print(
                f"instruction {index} is skipped: the tokenizer gives its prompt other ids in "
                f"training than at inference ({text[:60]!r}…)"
            )
    if num_skipped := len(pairs) - len(examples):
        print(f"{num_skipped} of {len(pairs)} instructions are skipped")
    if num_truncated:
        print(f"{num_truncated} of {len(examples)} examples are truncated to {cutoff_len} tokens")
    if pairs and not examples:
        raise InputError(
            "the tokenizer gives the prompt of every instruction other ids in training than at "
            "inference; use a model with another tokenizer"
        )
    return examples


class _Prompt(NamedTuple):
    """A prompt as it must be written for training, its ids there, and its ids at inference."""

    text: str
    ids: list[int]
    inference_ids: list[int]

    @property
    def agrees(self) -> bool:
        return self.ids == self.inference_ids


def _training_prompts(
    tokenizer: "PreTrainedTokenizerBase", prompts: Sequence[str]
) -> list[_Prompt]:
    """The prompts as they must be written for LLaMA-Factory's `fewshot` template.

    The template adds no BOS token. If the tokenizer adds one at inference, its text is put in
    front, and tokenising the text gives the token again. Llama 2's tokenizer puts a space before a
    text, but not after a BOS that is part of the text; there the space is written out.
    """
    inference_ids = _token_ids(tokenizer, prompts)
    bos = tokenizer.bos_token
    adds_bos = bool(bos) and all(ids[:1] == [tokenizer.bos_token_id] for ids in inference_ids)
    results: list[_Prompt] = []
    for start in [str(bos), f"{bos} "] if adds_bos else [""]:
        texts = [start + prompt for prompt in prompts]
        ids = _token_ids(tokenizer, texts, special=False)
        tried = list(map(_Prompt, texts, ids, inference_ids))
        pairs = zip(results or tried, tried, strict=True)
        results = [new if new.agrees and not old.agrees else old for old, new in pairs]
        if all(prompt.agrees for prompt in results):
            break
    return results


def _response_ids(tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str]) -> list[list[int]]:
    return _token_ids(tokenizer, [text + AFTER_RESPONSE for text in texts], special=False)


def _token_ids(
    tokenizer: "PreTrainedTokenizerBase", texts: Sequence[str], *, special: bool = True
) -> list[list[int]]:
    """Ids of many texts at once, which is several times as fast as one by one."""
    if not texts:
        return []
    ids: list[list[int]] = tokenizer(list(texts), add_special_tokens=special)["input_ids"]
    return ids
