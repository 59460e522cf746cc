"""Random numbers that belong to a sample, not to a run.

The draw of sample j of question q at step t is a function of (seed, stream, q, j, t) alone: a
counter-based generator (Philox) is keyed by seed, stream and question and its counter starts at
the sample. Batch size, order, sharding and the strategy in use change nobody's draws, and all
strategies of one stream draw the same numbers (paired comparison).
"""

import hashlib

import numpy as np


def uniforms(seed: int, stream: str, question_id: str, samples: range, n_steps: int) -> np.ndarray:
    """Uniforms in [0, 1), float64, shape (len(samples), n_steps).

    Args:
        stream: independent streams of one seed: the two batches of the clean model, the strategies.
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
