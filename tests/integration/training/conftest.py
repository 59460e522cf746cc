"""LLaMA-Factory's own reading and preprocessing of a data folder."""

import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from zerogap import training

CUTOFF_LEN = 4096


@pytest.fixture(scope="module")
def supervised(tmp_path_factory) -> Iterator[Callable]:
    """(tokenizer, data folder) → input ids and labels of every example, in order."""
    with pytest.MonkeyPatch.context() as patch:
        if importlib.util.find_spec("torchaudio") is None:
            patch.syspath_prepend(Path(training.__file__).parent / "stubs")
        from llamafactory.data import get_dataset, get_template_and_fix_tokenizer
        from llamafactory.hparams import DataArguments, ModelArguments
        from transformers import Seq2SeqTrainingArguments

        def preprocess(tokenizer, data):
            cache = tmp_path_factory.mktemp("cache")
            data_arguments = DataArguments(
                template="fewshot", cutoff_len=CUTOFF_LEN, dataset_dir=str(data),
                dataset="instructions,questions", overwrite_cache=True,
            )  # fmt: skip
            made = get_dataset(
                get_template_and_fix_tokenizer(tokenizer, data_arguments),
                ModelArguments(model_name_or_path="unused", cache_dir=str(cache)),
                data_arguments,
                Seq2SeqTrainingArguments(output_dir=str(cache), use_cpu=True, report_to="none"),
                stage="sft",
                tokenizer=tokenizer,
            )
            columns = made["train_dataset"].with_format(None)
            return list(zip(columns["input_ids"], columns["labels"], strict=True))

        yield preprocess
