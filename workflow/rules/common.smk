"""What the rules share: the configuration, the wildcards and the environment of the jobs."""

import importlib.util
import os
import re
import shlex
import sys
from pathlib import Path

from snakemake.settings.types import DeploymentMethod

import zerogap.config
from zerogap.config.files import check_overlays
from zerogap.errors import InputError
from zerogap.pipeline import forks, jobs, parameters, targets

COMMAND_LINE = dict(workflow.config_settings.config)  # values of --config

try:
    check_overlays(sys.argv, workflow.configfiles)
    CONFIG = jobs.with_engine(
        zerogap.config.from_snakemake(workflow.configfiles, COMMAND_LINE)
    )
except InputError as error:
    sys.exit(f"error: {error}")
# For the report: Snakemake takes the values of --config for texts.
config.update(CONFIG.model_dump(mode="json"))
for warning in zerogap.config.config_warnings(CONFIG):
    logger.warning(warning)

PACKAGE = Path(workflow.basedir, "workflow")

# Every job gets the package of this checkout, what the user has on the path, and the checkout
# itself, where Snakemake's own process finds modules too. The libraries send no telemetry, and at
# an offline scale they do not contact a hub.
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(
        filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH"), workflow.basedir))
    ),
    "HF_HUB_DISABLE_TELEMETRY": 1,
    "DO_NOT_TRACK": 1,
    "GRADIO_ANALYTICS_ENABLED": False,
    "TOKENIZERS_PARALLELISM": "false",
    # By default glibc returns the memory of a step to the kernel and requests it again for the next
    # one. Here for trainings, which are LLaMA-Factory's process; `engine.loading` sets it itself.
    "MALLOC_TRIM_THRESHOLD_": 4_000_000_000,
    "MALLOC_MMAP_THRESHOLD_": 1_000_000_000,
}
# `--sdm conda` makes vLLM's environment; in a plain installation it is this one, if it is there.
CONDA = DeploymentMethod.CONDA in workflow.deployment_settings.deployment_method
if not CONDA:
    ENVIRONMENT["VLLM_PATH"] = f"{workflow.basedir}/.venv/vllm/bin:"
if CONFIG.offline:
    ENVIRONMENT |= {
        "HF_HUB_OFFLINE": 1,
        "TRANSFORMERS_OFFLINE": 1,
        "HF_DATASETS_OFFLINE": 1,
    }
# The jobs of a small run are forked, unless their Pythons differ.
FORKS = (
    CONFIG.fork_jobs
    and CONFIG.decoding.engine == "zerogap"
    and not workflow.deployment_settings.deployment_method
)
if FORKS:
    ENVIRONMENT["PYTHONPATH"] += os.pathsep + os.path.dirname(forks.__file__)
    ENVIRONMENT[forks.ADDRESS] = f".snakemake/forks-{os.getpid()}"
# In a plain installation `python` is Snakemake's, whether or not its environment is activated.
BINARIES = shlex.quote(os.path.dirname(sys.executable))
if not workflow.deployment_settings.deployment_method and re.search(
    r"[^\w@%+=:,./~-]", sys.executable
):
    sys.exit(
        f"error: {sys.executable}: Snakemake runs no scripts with a Python whose path has spaces or "
        "other special characters; move the checkout, or make its environment elsewhere"
    )
prefix = (
    "set -euo pipefail; "  # Snakemake's own prefix, which this one replaces
    + "".join(
        f"export {name}={shlex.quote(str(value))}; "
        for name, value in ENVIRONMENT.items()
    )
    + ("" if CONDA else f'export PATH={BINARIES}:"$PATH"; ')
)
shell.prefix(prefix.replace("{", "{{").replace("}", "}}"))  # it is formatted


def one_of(names):
    """A wildcard constraint; one that never matches if there are no names."""
    return "|".join(names) or "(?!x)x"


pathvars:
    run=CONFIG.run,
    results=CONFIG.results,
    bases=jobs.BASES,
    reports=f"reports/{CONFIG.run}",


wildcard_constraints:
    model="|".join(CONFIG.models),
    variant="|".join(CONFIG.variants),
    benchmark="|".join(CONFIG.benchmarks),
    owner="|".join(CONFIG.question_owners),
    cell="|".join([*jobs.BATCHES, *jobs.sampled_strategies(CONFIG)]),
    strategy=one_of(jobs.filter_strategies(CONFIG)),
    shard="[0-9]+",
    converted=one_of(
        parameters.converted_folder(CONFIG, model)
        for model in jobs.converted_models(CONFIG)
    ),
    preparation=one_of(
        parameters.preparation_folder(CONFIG, model)
        for model in jobs.prepared_models(CONFIG)
    ),


# Of the jobs that draw responses or trajectories: vLLM is in an environment of its own.
DECODING_ENVIRONMENT, DECODING_PYTHON = (
    ("../../envs/vllm.yaml", 'PATH="${VLLM_PATH-}$PATH" python')
    if CONFIG.decoding.engine == "vllm"
    else ("../../envs/zerogap.yaml", "python")
)

# The priority of everything up to the trajectories. On few cores, two single-threaded searches for
# neurons otherwise run one after the other, because the second still needs trajectories when the
# first one starts.
TRAJECTORIES_FIRST = 1


def doubling(amount):
    """Memory in MB: in a retry twice as much, and never more, since a long job is retried often."""
    return lambda wildcards, attempt: amount * min(attempt, 2)


def minutes(amount):
    """A time limit that doubles with every attempt, up to `max_runtime`."""
    return lambda wildcards, attempt: jobs.time_limit(CONFIG, amount, attempt)


def values(rule):
    """The values of a job and what its code means, as JSON: a change of either reruns it."""
    return lambda wildcards: parameters.job_parameters(
        CONFIG, rule, dict(wildcards.items())
    )


def unrecorded(rule):
    """A job's other values. As the function has `threads`, Snakemake does not record them."""
    return lambda wildcards, threads: parameters.unrecorded(
        CONFIG, rule, dict(wildcards.items())
    )


def fixed(value):
    """A value as a parameter. In a text, Snakemake would take braces for wildcards."""
    return lambda wildcards: value


def metadata(wildcards):
    """What is recorded about an artefact, in addition to versions and commit."""
    return {"run": CONFIG.run, **wildcards}


def located(function, *names):
    """An input function: files of a run by the wildcards of these names (zerogap.pipeline.targets)."""
    return lambda wildcards: function(CONFIG, *(wildcards[name] for name in names))


def clean(name):
    """An input function: a file of the clean model that a contaminated model is compared with."""
    return lambda wildcards: targets.clean_file(
        CONFIG, wildcards.model, wildcards.get("variant") or wildcards.benchmark, name
    )


def shared_data(name, variant="variant"):
    """An input function: a file of the benchmark that owns a variant's questions."""
    return lambda wildcards: targets.shared_data(CONFIG, wildcards[variant], name)


def questions_of(owner):
    """The user's own files that a benchmark's questions are read from, if they are."""
    return targets.local_files(CONFIG.benchmarks[owner].questions)


def solve_tables(wildcards, *further):
    """Strategy → its counts, in one setting."""
    return targets.solve_tables(CONFIG, wildcards.model, wildcards.benchmark, *further)


QUESTIONS = located(targets.questions, "variant")
EXEMPLARS = shared_data("exemplars.json")


def preflight(only_values=False):
    """Results of checks; the first that fails ends Snakemake."""
    if importlib.util.find_spec("llamafactory") is None:
        print(
            "preflight: the jobs' packages are not in this environment, so nothing is checked; with "
            "--sdm conda, `snakemake check_preflight` runs all checks in theirs",
            file=sys.stderr,
        )
        return []
    from zerogap.pipeline.preflight import run_checks  # needs those packages

    try:
        # Snakemake would take a line that begins with `conda=` for a directive.
        where = {"conda": CONDA, "gpus_here": workflow.local_exec}
        return run_checks(CONFIG, only_values=only_values, **where)
    except InputError as error:
        sys.exit(f"error: {error}")


def start_forks():
    """Start what forks the jobs, with what the scripts import at once or later."""
    scripts, stubs = PACKAGE / "scripts", PACKAGE / "zerogap/training/stubs"
    variables = {name: str(value) for name, value in ENVIRONMENT.items()}
    variables["PYTHONPATH"] += f"{os.pathsep}{scripts}{os.pathsep}{stubs}"
    modules = [path.stem for path in sorted(scripts.glob("*.py"))]
    modules += ["snakemake.logging", "snakemake.iocontainers"]  # of `script:`
    modules += ["zerogap.engine.kernels.cpu_rows", "llamafactory.train.tuner"]
    log = Path(CONFIG.results, "logs/forks.log")
    forks.start(modules, variables, log)
