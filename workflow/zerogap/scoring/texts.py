"""The texts of a file of responses: questions, and the first responses to each."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from zerogap.io import parquet
from zerogap.scoring import formats, lm_eval
from zerogap.scoring.inputs import ALIASES, COLUMNS
from zerogap.scoring.response_file import ResponseFile, read
from zerogap.strategies.filtering import DROPPED

NUM_SHOWN = 3  # responses per question


@dataclass(frozen=True)
class Texts:
    """The texts of a file, as far as it has them.

    Attributes:
        questions: Question id → text of the question.
        responses: Question id → its first responses, at most `NUM_SHOWN`.
    """

    questions: dict[str, str] = field(default_factory=dict)
    responses: dict[str, list[str]] = field(default_factory=dict)

    def add(self, question_id: object, question: object, responses: list[Any]) -> None:
        """Keep the texts among the values of one row."""
        key = str(question_id).strip()
        if isinstance(question, str):
            self.questions[key] = question
        shown = self.responses.setdefault(key, [])
        shown += [text for text in responses if isinstance(text, str)][: NUM_SHOWN - len(shown)]


def read_texts(path: str | Path) -> Texts:
    """Read the texts of a file that `zerogap.scoring.inputs.load` accepts.

    The questions of a file in the results of a run are those of its benchmark.

    Raises:
        InputError: As `zerogap.scoring.response_file.read`.
    """
    file = read(Path(path), ("question", *COLUMNS))
    if set(file.rows) >= lm_eval.COLUMNS:
        return _log_texts(file)
    texts = Texts()
    file, _, _ = formats.convert(file, None)
    for row in file.rename(ALIASES).rows.to_dict("records"):
        texts.add(row["question_id"], row.get("question"), [row.get("response")])
    return texts if texts.questions else replace(texts, questions=_run_questions(Path(path)))


def _run_questions(samples: Path) -> dict[str, str]:
    """The questions of a file <run>/<model>/<benchmark>/cells/<strategy>/samples.parquet."""
    benchmark = samples.resolve().parent.parent.parent  # the root is its own parent
    path = benchmark / "../../data" / benchmark.name / "questions.parquet"
    if not path.is_file():
        return {}
    table = parquet.read(path, "questions")
    return dict(zip(table["question_id"], table["question"], strict=True))


def _log_texts(file: ResponseFile) -> Texts:
    """The texts of an lm_eval log, whose filters all repeat the same responses."""
    texts = Texts()
    for record in file.rows.drop_duplicates("doc_id").to_dict("records"):
        doc = record.get("doc")
        question = doc.get("question") if isinstance(doc, dict) else None
        responses = [text for text in record["resps"][0] if text != DROPPED]
        texts.add(record["doc_id"], question, responses)
    return texts
