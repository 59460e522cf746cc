"""Random numbers that belong to a sample, not to a run.

The uniform of sample j of question q at step t is a function of (seed, stream, q, j, t) alone. A
counter-based generator (Philox) is keyed by seed, stream and question, and its counter starts at
the sample. Batch size, order, sharding and strategy change no draw, and all strategies of a stream
use the same numbers, which makes their comparison paired.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray


def uniforms(
    seed: int, stream: str, question_id: str, samples: range, n_steps: int
) -> NDArray[np.float64]:
    """Uniforms in [0, 1), shape (len(samples), n_steps).

    Args:
        seed: of the run.
        stream: name of one of the independent streams of a seed: the two batches of the clean
            model and the strategies have one each.
        question_id: the question.
        samples: sample ids.
        n_steps: uniforms per sample.
    """
    digest = hashlib.blake2b(f"{seed}/{stream}/{question_id}".encode(), digest_size=16).digest()
    key = np.frombuffer(digest, dtype="<u8")
    return np.stack(
        [
            np.random.Generator(np.random.Philox(key=key, counter=[0, sample, 0, 0])).random(
                n_steps
            )
            for sample in samples
        ]
    )
