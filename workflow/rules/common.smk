"""What the rules share: the checked configuration, lists of targets, and parameters as JSON."""

import importlib.util
import json
import os
import shlex
import sys
from pathlib import Path

# The package is part of the checkout: jobs use it as it stands here, installed or not.
PACKAGE = Path(workflow.basedir, "workflow")
sys.path.insert(0, str(PACKAGE))

from snakemake.common.configfile import load_configfile

import zerogap.config
from zerogap.pipeline import jobs
from zerogap.errors import InputError

try:
    zerogap.config.restore_order(config, load_configfile("config.yaml"))
    zerogap.config.settle(config, workflow.configfiles)
except InputError as error:
    sys.exit(f"error: {error}")
for doubt in zerogap.config.doubts(config):
    logger.warning(doubt)


# What every job's shell is given: the package and what the user has on the path, silence towards
# everybody's telemetry, and at an offline scale the hub libraries' own switches.
ENVIRONMENT = {
    "PYTHONPATH": os.pathsep.join(
        filter(None, (str(PACKAGE), os.environ.get("PYTHONPATH")))
    ),
    "HF_HUB_DISABLE_TELEMETRY": 1,
    "DO_NOT_TRACK": 1,
    "GRADIO_ANALYTICS_ENABLED": False,
    "TOKENIZERS_PARALLELISM": "false",
    # glibc would give a step's tensors back to the kernel and ask for them again: a tenth of the
    # time that sampling takes on a CPU.
    "MALLOC_TRIM_THRESHOLD_": 4_000_000_000,
    "MALLOC_MMAP_THRESHOLD_": 1_000_000_000,
}
if config["offline"]:
    ENVIRONMENT |= {
        "HF_HUB_OFFLINE": 1,
        "TRANSFORMERS_OFFLINE": 1,
        "HF_DATASETS_OFFLINE": 1,
    }
shell.prefix("".join(f"export {name}={value}; " for name, value in ENVIRONMENT.items()))


pathvars:
    run=config["run"],
    results=f"results/{config['run']}",
    reports=f"reports/{config['run']}",


MODELS = list(config["models"])
BENCHMARKS = list(config["benchmarks"])
SETTING = config["setting"]
STRATEGIES = jobs.strategies(config)
SAMPLED = [name for name, entry in STRATEGIES.items() if "filters" not in entry]
FILTERING = [name for name, entry in STRATEGIES.items() if "filters" in entry]
BATCHES = jobs.BATCHES
SHARDS = config["decoding"]["shards"]
FETCHED = jobs.fetched(config)
NOTHING = "(?!x)x"  # a constraint that no name fulfils

# Raised by hand when results would change: jobs on GPUs must not rerun for an edited comment,
# and must not keep what an older version made.
VERSIONS = {"training": 1, "decoding": 2}


wildcard_constraints:
    model="|".join(MODELS),
    benchmark="|".join([*BENCHMARKS, "clean"]),
    strategy="|".join([*STRATEGIES, "all_zero"]),
    batch="|".join(BATCHES),
    shard="[0-9]+",


def script(name):
    """The command that runs one of the workflow's scripts."""
    return f"python workflow/scripts/{name}.py"


def sources(*parts, script):
    """Code whose edit makes cheap results anew: parts of the package, and the script itself."""
    files = [PACKAGE / f"scripts/{script}.py"]
    for part in parts:
        files += PACKAGE.joinpath("zerogap", part).glob("*.py")
    return sorted(str(path.relative_to(workflow.basedir)) for path in files)


def as_json(value):
    """A part of the configuration as one argument of a script."""
    return json.dumps(value)


def facts(wildcards):
    """What an artefact says of its origin, beside versions and commit."""
    named = {key: value for key, value in wildcards.items() if key != "shard"}
    return as_json({"run": config["run"], **named})


def setting_strategies(model, benchmark):
    """The strategies that are read in one setting, the trivial one among them."""
    return [*jobs.compared(config, model, benchmark), "all_zero"]


def labels():
    """How models, benchmarks, strategies and Table 4's rows are called in tables and figures."""
    named = {
        part: {name: entry["label"] for name, entry in config[part].items()}
        for part in ("models", "benchmarks", "strategies")
    }
    return as_json(named | {"configurations": configurations()})


def configurations():
    """Table 4's rows: RailCap itself by its n among the ablation's, caps before bans."""
    rows = dict(config["ablation"])
    if railcap := config["strategies"].get("railcap"):
        rows["railcap"] = railcap | {"label": f"n={railcap['parameters']['n']}"}

    def place(item):
        parameters = item[1].get("parameters", {})
        return parameters.get("suppression") != "cap", parameters.get("n", 0)

    return {name: entry["label"] for name, entry in sorted(rows.items(), key=place)}


def base_model(model):
    """The folder of a base model: the configured one, or where it is fetched or made."""
    base = config["models"][model]["base"]
    return base if Path(base).is_dir() else f"results/{config['run']}/{model}/base"


def grown(amount):
    """A resource that doubles with every attempt."""
    return lambda wildcards, attempt: amount * 2 ** (attempt - 1)


def strategy_entry(name):
    """A strategy's class and parameters, without how the workflow treats it."""
    entry = STRATEGIES[name]
    return as_json({"class": entry["class"], "parameters": entry.get("parameters", {})})


def check_before_start():
    """Stop before anything is started where something would fail hours later."""
    if importlib.util.find_spec("llamafactory") is None:
        print(
            "preflight: the jobs' packages are not in this environment; with --sdm conda, "
            "`snakemake preflight` checks in theirs",
            file=sys.stderr,
        )
        return
    from zerogap.pipeline import preflight  # imports that a dry run does without

    try:
        findings = preflight.pass_or_stop(config)
    except InputError as error:
        sys.exit(f"error: {error}")
    if findings:
        path = Path("results", config["run"], "preflight.txt")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{finding}\n" for finding in findings))


BOOTSTRAP = {
    "n_resamples": config["metrics"]["replicates"],
    "confidence_level": config["metrics"]["level"],
    "seed": config["seed"],
}


# Data


def source(part):
    """One source of data with its own options: {"kind": …, …}."""
    kind = part["source"]
    options = part.get(kind) or {}
    return {"kind": kind} | (
        options if isinstance(options, dict) else {"path": options}
    )


def original(part):
    """By what the original questions are known: for those that come from outside."""
    if part["source"] == "generated":
        return {}
    return {key: part["hub"][key] for key in ("rows", "sha256")}


def local_files(part):
    """The user's own files among a source's options: inputs, so that an edit reruns."""
    given = source(part)
    return [
        given[key]
        for key in ("train", "test", "path")
        if given["kind"] == "files" and key in given
    ]


# Training


def starting_model(wildcards):
    """What a training starts from: the base for the clean model, the clean model otherwise."""
    if wildcards.benchmark == "clean":
        return base_model(wildcards.model)
    return f"results/{config['run']}/{wildcards.model}/clean/model"


def training_questions(wildcards):
    """The table whose questions a training reads."""
    table = "train" if wildcards.benchmark == "clean" else "questions"
    return f"results/{config['run']}/data/{table}.parquet"


def leaks(wildcards):
    """Which text leaks: nothing does into the clean model."""
    if wildcards.benchmark == "clean":
        return ""
    return f"--leaks {config['benchmarks'][wildcards.benchmark]['leaks']}"


def training_values(*keys):
    """The training's values as one argument: those a job needs, or all."""

    def values(wildcards):
        every = zerogap.config.stage(config, wildcards.benchmark) | {
            "seed": config["seed"]
        }
        return as_json({key: every[key] for key in keys or every})

    return values


# Base models from scratch


def bases_from_scratch(wildcards):
    """The bases that are pretrained, the shipped ones included."""
    for model in MODELS:
        zerogap.config.pretraining(
            config, model
        )  # raises where the configuration has none
    return [
        f"results/{config['run']}/{model}/base"
        for model in MODELS
        if model not in FETCHED
    ]


def pretraining_values(wildcards):
    """A base's pretraining as one argument."""
    return as_json(zerogap.config.pretraining(config, wildcards.model))


def real_questions(wildcards):
    """GSM8K's training split, if it is mixed in, and the tables of questions left out of it."""
    path = zerogap.config.pretraining(config, wildcards.model).get("gsm8k")
    if path is None:
        return {}
    tables = [
        f"results/{config['run']}/data/{name}.parquet" for name in ("train", "split")
    ]
    return {"gsm8k": path, "used": tables}


def mixed_in(wildcards, input):
    """Those as arguments."""
    if "gsm8k" not in input.keys():
        return ""
    return shlex.join(["--gsm8k", input.gsm8k, "--used", *input.used])


# Decoding

# What the jobs are told of it. Into how many shards a cell is divided changes no draw, and so must
# not make anything again that is there.
DECODING = as_json(
    {key: value for key, value in config["decoding"].items() if key != "shards"}
)


def sharded(path):
    """The file of one shard of a cell; the cell's own where it is not divided."""
    stem, dot, suffix = path.rpartition(".")
    return f"{stem}.shard-{{shard}}{dot}{suffix}" if SHARDS > 1 else path


def shards(path):
    """The files of all shards of a cell."""
    stem, dot, suffix = path.rpartition(".")
    return [f"{stem}.shard-{number}{dot}{suffix}" for number in range(SHARDS)]


def shard(wildcards):
    """Which questions a job samples: all, or every n-th."""
    return f"--shard {wildcards.shard} {SHARDS}" if SHARDS > 1 else ""


def borrowed(wildcards):
    """What a strategy needs beside the contaminated model and its trajectories."""
    if not STRATEGIES[wildcards.strategy].get("borrows"):
        return {}
    return {
        "base_model": base_model(wildcards.model),
        "neurons": f"results/{config['run']}/{wildcards.model}/{wildcards.benchmark}/neurons.parquet",
    }


# Metrics


def solve_tables(wildcards):
    """Every strategy's counts in one setting, and the clean model's second batch."""
    folder = f"results/{config['run']}/{wildcards.model}"
    tables = {
        name: f"{folder}/{wildcards.benchmark}/{name}/solve.parquet"
        for name in setting_strategies(wildcards.model, wildcards.benchmark)
    }
    return tables | {"clean_batch2": f"{folder}/clean/batch2/solve.parquet"}


# Report


def in_setting(*names):
    """Files of the setting that Tables 1, 2 and 4 and the figures look at."""
    return [
        f"<results>/{SETTING['model']}/{SETTING['benchmark']}/{name}" for name in names
    ]


def of_clean(*names):
    """Files of that setting's clean model."""
    return [f"<results>/{SETTING['model']}/clean/{name}" for name in names]


def protocol(models):
    """What says whether readings can be compared with the paper's, by the names of published.csv."""
    data, decoding = config["data"], config["decoding"]
    trainings = [
        zerogap.config.stage(config, kind) for kind in ("clean", "contaminated")
    ]
    given = {
        "test_questions": [data["n_test"]],
        "leaked_questions": [data["n_leaked"]],
        "train_questions": [data["n_train"]],
        "filler_examples": [data["instructions"]["n"]],
        "shots": [config["prompt"]["shots"]],
        "samples": [decoding["samples"]],
        "temperature": [decoding["temperature"]],
        "bins": [config["metrics"]["bins"]],
        "lora_r": [training["lora"]["rank"] for training in trainings],
        "lora_alpha": [training["lora"]["alpha"] for training in trainings],
        "batch_size": [training["global_batch_size"] for training in trainings],
    }
    for key in ("learning_rate", "warmup_ratio", "epochs"):
        given[key] = [training[key] for training in trainings]
    bases = {model: config["models"][model]["base"] for model in models}
    return as_json({"questions": data["source"], "base_model": bases, **given})


def without_ablation(entries, *others):
    """What is there of each strategy, less the ablation's and the others named."""
    left_out = [*config["ablation"], *others]
    return {name: entry for name, entry in entries.items() if name not in left_out}


def sampled_cells():
    """Every strategy's responses in all settings, the clean model's first batch before them."""
    folder = f"results/{config['run']}"
    cells = {
        "clean": [f"{folder}/{model}/clean/batch1/samples.parquet" for model in MODELS]
    }
    for model in MODELS:
        for benchmark in BENCHMARKS:
            for strategy in jobs.compared(config, model, benchmark):
                path = f"{folder}/{model}/{benchmark}/{strategy}/samples.parquet"
                cells.setdefault(strategy, []).append(path)
    return cells


def jobs_with_benchmarks():
    """[model, benchmark, job, what it made, its benchmark] of every job on a device.

    A benchmark with {shard} in its name has a file a shard: all their names would be more than a
    command line holds.
    """
    found = []
    for job in jobs.on_device(config):
        name = job.cell or {"greedy_trajectories": "greedy"}.get(job.rule, job.rule)
        benchmark = (
            f"results/{config['run']}/benchmarks/{job.model}/{job.benchmark}/{name}.tsv"
        )
        found.append(
            [
                job.model,
                job.benchmark,
                name,
                str(jobs.made(config, job)),
                sharded(benchmark) if job.cell else benchmark,
            ]
        )
    return found


def contaminated_models():
    """What the check reads of every contaminated model: two solve tables and its overlap."""
    folder = f"results/{config['run']}"
    return [
        [
            model,
            benchmark,
            f"{folder}/{model}/clean/batch1/solve.parquet",
            f"{folder}/{model}/{benchmark}/identity/solve.parquet",
            f"{folder}/{model}/{benchmark}/overlap.parquet",
        ]
        for model in MODELS
        for benchmark in BENCHMARKS
    ]


def itself():
    """The command that calls Snakemake again with this run's configuration.

    This run holds the directory's lock; the call within it only reads.
    """
    command = ["python", "-m", "snakemake", "--nolock"]
    command += ["--snakefile", os.path.relpath(workflow.main_snakefile)]
    if files := workflow.overwrite_configfiles:
        command += ["--configfile", *map(os.path.relpath, files)]
    if given := workflow.config_settings.config_args:
        command += ["--config", *given]
    return shlex.join(command)
