import numpy as np
import pytest

from zerogap.sampling.neuron_journal import NeuronJournal
from zerogap.strategies.neuron_localisation import NeuronGroup

FIRST, SECOND = NeuronGroup(0, 0, 2), NeuronGroup(0, 2, 4)


@pytest.fixture
def written(tmp_path):
    journal = NeuronJournal(tmp_path)
    journal.add("contaminated", None, 0.1 + 0.2, 100)
    journal.add("contaminated", FIRST, 1 / 3, 64)
    journal.add("contaminated", SECOND, 0.25, 32)
    return tmp_path / "accuracies.jsonl"


def test_entries_are_read_back_exactly(written):
    journal = NeuronJournal(written.parent)
    accuracies = journal.accuracies("contaminated", [FIRST, SECOND])
    assert accuracies == (0.1 + 0.2, {FIRST: 1 / 3, SECOND: 0.25})
    assert not journal.has("clean", FIRST)


def test_a_resumed_job_continues_with_the_batch_size_of_the_last_patched_pass(written):
    journal = NeuronJournal(written.parent)
    assert journal.batch_size("contaminated") == 32
    assert journal.batch_size("clean") is None
    journal.add("clean", None, 0.5, 100)  # one model in memory instead of two
    assert journal.batch_size("clean") is None


def test_a_line_cut_by_a_kill_is_dropped_and_measured_again(written, capsys):
    written.write_text(written.read_text()[:-30])
    journal = NeuronJournal(written.parent)
    assert journal.has("contaminated", FIRST)
    assert not journal.has("contaminated", SECOND)
    assert "accuracies.jsonl: line 3 is not readable" in capsys.readouterr().err
    journal.add("contaminated", SECOND, 0.75, 32)
    again = NeuronJournal(written.parent)
    assert again.accuracies("contaminated", [FIRST, SECOND]).patched[SECOND] == 0.75
    assert capsys.readouterr().err == ""


def test_a_changed_number_is_measured_again(written, capsys):
    written.write_text(written.read_text().replace("0.25", "0.75"))
    assert not NeuronJournal(written.parent).has("contaminated", SECOND)
    assert "accuracies.jsonl: line 3 is not readable" in capsys.readouterr().err


def test_comparative_scores_are_read_back_exactly(tmp_path):
    journal = NeuronJournal(tmp_path)
    assert journal.comparative_scores() is None
    scores = [np.array([1 / 3, 2.0]), np.array([0.1])]
    journal.add_comparative_scores(scores)
    stored = NeuronJournal(tmp_path).comparative_scores()
    assert all(np.array_equal(a, b) for a, b in zip(stored, scores, strict=True))


def test_unreadable_comparative_scores_are_computed_again(tmp_path, capsys):
    journal = NeuronJournal(tmp_path)
    journal.add_comparative_scores([np.ones(2)])
    path = next(tmp_path.glob("comparative-*.npz"))
    path.write_bytes(path.read_bytes()[:-40])
    assert journal.comparative_scores() is None
    assert "changed since it was written; computing it again" in capsys.readouterr().err
