"""What the rules of the report share: lists of inputs, labels, and the sentence on the scale."""

import json
import shlex

MODELS = list(CONFIG.models)
BENCHMARKS = list(CONFIG.benchmarks)
SETTING = CONFIG.primary_setting.model_dump()
BOOTSTRAP = CONFIG.metrics.model_dump(exclude={"bins"}) | {"seed": CONFIG.seed}


def script(name):
    """The command that runs one of the workflow's scripts."""
    return f"python workflow/scripts/{name}.py"


def sources(*packages, script):
    """Code whose edit reruns a cheap rule: parts of the package, and the script itself."""
    return [*code(*packages), f"workflow/scripts/{script}.py"]


def as_json(value):
    """A part of the configuration as one argument of a script."""
    return json.dumps(value)


def labels():
    """The labels of models, benchmarks, strategies and Table 4's rows."""
    sections = ("models", "benchmarks", "strategies")
    named = {
        section: {name: entry.label for name, entry in getattr(CONFIG, section).items()}
        for section in sections
    }
    return as_json(named | {"configurations": configurations()})


def configurations():
    """Table 4's rows: RailCap itself by its n among the ablation's, caps before bans."""
    rows = {
        name: (entry.label, entry.parameters) for name, entry in CONFIG.ablation.items()
    }
    if railcap := CONFIG.strategies.get("railcap"):
        rows["railcap"] = (f"n={railcap.parameters['n']}", railcap.parameters)

    def position(item):
        _, values = item[1]
        return values.get("suppression") != "cap", values.get("n", 0)

    return {name: label for name, (label, _) in sorted(rows.items(), key=position)}


def in_setting(*names):
    """Files of the primary setting."""
    return [
        f"<results>/{SETTING['model']}/{SETTING['benchmark']}/{name}" for name in names
    ]


def of_clean(*names):
    """Files of the primary setting's clean model."""
    folder = targets.clean_folder(CONFIG, **SETTING)
    return [f"{folder}/{name}" for name in names]


def protocol(models):
    """Which values decide whether metrics can be compared with the paper's (published.csv)."""
    benchmark = CONFIG.benchmarks[SETTING["benchmark"]]
    trainings = [CONFIG.training.clean, CONFIG.training.contaminated]
    values = {
        "test_questions": [benchmark.num_test],
        "leaked_questions": [benchmark.num_leaked],
        "train_questions": [benchmark.num_train],
        "filler_examples": [CONFIG.instructions.num_examples],
        "shots": [benchmark.prompt.num_shots],
        "samples": [CONFIG.sampling.num_samples],
        "temperature": [CONFIG.sampling.temperature],
        "bins": [CONFIG.metrics.bins],
        "lora_r": [training.lora.rank for training in trainings],
        "lora_alpha": [training.lora.alpha for training in trainings],
        "batch_size": [training.global_batch_size for training in trainings],
        "learning_rate": [training.learning_rate for training in trainings],
        "warmup_ratio": [training.warmup_ratio for training in trainings],
        "epochs": [training.num_epochs for training in trainings],
    }
    bases = {model: CONFIG.models[model].base for model in models}
    return as_json(
        {"questions": benchmark.questions.source, "base_model": bases, **values}
    )


def without_ablation(entries, *others):
    """The entries of strategies, without the ablation's and the others named."""
    left_out = [*CONFIG.ablation, *others]
    return {name: entry for name, entry in entries.items() if name not in left_out}


def sampled_cells():
    """The responses of every strategy in all settings; the clean models' first batch first."""
    folder = targets.results(CONFIG)
    cells = {
        "clean": [
            f"{folder}/{model}/{variant}/batch1/samples.parquet"
            for model in MODELS
            for variant in CONFIG.clean_variants
        ]
    }
    for model in MODELS:
        for benchmark in BENCHMARKS:
            for strategy in jobs.compared_strategies(CONFIG, model, benchmark):
                path = f"{folder}/{model}/{benchmark}/{strategy}/samples.parquet"
                cells.setdefault(strategy, []).append(path)
    return cells


def cost_jobs():
    """[model, variant, job, what it made, its timing] of every long job.

    A timing with {shard} in its name has one file per shard.
    """
    names = {"decode_greedy": "greedy"}
    return [
        [
            timed.job.model,
            timed.job.variant,
            timed.job.cell or names.get(timed.job.rule, timed.job.rule),
            timed.output,
            timed.timings[0].replace(".shard-0.", ".shard-{shard}."),
        ]
        for timed in targets.timed_jobs(CONFIG)
    ]


def contaminated_models():
    """What the check reads of every contaminated model: two solve tables and its overlap."""
    folder = targets.results(CONFIG)
    return [
        [
            model,
            benchmark,
            f"{targets.clean_folder(CONFIG, model, benchmark)}/batch1/solve.parquet",
            f"{folder}/{model}/{benchmark}/identity/solve.parquet",
            f"{folder}/{model}/{benchmark}/overlap.parquet",
        ]
        for model in MODELS
        for benchmark in BENCHMARKS
    ]


def snakemake_command():
    """The command that calls Snakemake again with this run's configuration.

    This run holds the directory's lock; the call within it only reads.
    """
    command = ["python", "-m", "snakemake", "--nolock"]
    command += ["--snakefile", os.path.relpath(workflow.main_snakefile)]
    if files := workflow.overwrite_configfiles:
        command += ["--configfile", *map(os.path.relpath, files)]
    if values := workflow.config_settings.config_args:
        command += ["--config", *values]
    return shlex.join(command)
