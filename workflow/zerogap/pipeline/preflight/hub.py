"""Checks of what the run downloads from the Hugging Face hub."""

from dataclasses import dataclass
from pathlib import Path

from zerogap.config import Config
from zerogap.io.hub import access_problem, hub_problem
from zerogap.pipeline import jobs, targets
from zerogap.pipeline.preflight.result import OK, CheckResult, failed

HUB = "hub"


@dataclass(frozen=True)
class HubResource:
    """A model or data set that the run has yet to download.

    Attributes:
        key: its configuration key.
        kind: "model" or "dataset".
        repository: its name on the hub.
        revision: branch, tag or commit; None for the default branch.
        alternative: what to configure instead if the hub cannot be used.
    """

    key: str
    kind: str
    repository: str
    revision: str | None
    alternative: str


def hub_resources(config: Config) -> list[HubResource]:
    """What the run will download and does not have yet."""
    return [
        *_models(config),
        *_paraphrase_models(config),
        *_question_sets(config),
        *_instruction_sets(config),
    ]


def _models(config: Config) -> list[HubResource]:
    return [
        HubResource(
            key=f"models.{model}",
            kind="model",
            repository=config.models[model].base,
            revision=config.models[model].revision,
            alternative="a folder as its base",
        )
        for model in jobs.fetched_models(config)
        if jobs.base_folder(config, model) is None
    ]


def _paraphrase_models(config: Config) -> list[HubResource]:
    resources = []
    for name, benchmark in config.benchmarks.items():
        paraphrases = benchmark.paraphrases
        if paraphrases is None or paraphrases.method != "local" or paraphrases.local is None:
            continue
        repository = paraphrases.local.model or ""
        is_done = all(Path(path).exists() for path in targets.paraphrases(config, name))
        if not is_done and not Path(repository).is_dir():
            resources.append(
                HubResource(
                    key=f"benchmarks.{name}.paraphrases.local",
                    kind="model",
                    repository=repository,
                    revision=paraphrases.local.revision,
                    alternative="a folder as its model",
                )
            )
    return resources


def _question_sets(config: Config) -> list[HubResource]:
    resources = []
    for owner in config.question_owners:
        questions = config.benchmarks[owner].questions
        is_done = Path(targets.owner_data(config, owner), "train.jsonl").exists()
        if questions.source == "hub" and questions.hub and not is_done:
            key = f"benchmarks.{owner}.questions"
            resources.append(
                HubResource(
                    key=key,
                    kind="dataset",
                    repository=questions.hub.repository,
                    revision=questions.hub.revision,
                    alternative=f"{key}.source: files",
                )
            )
    return resources


def _instruction_sets(config: Config) -> list[HubResource]:
    instructions = config.instructions
    is_done = Path(targets.results(config), "data", "instructions.jsonl").exists()
    if instructions.source != "hub" or instructions.hub is None or is_done:
        return []
    return [
        HubResource(
            key="instructions",
            kind="dataset",
            repository=instructions.hub.repository,
            revision=instructions.hub.revision,
            alternative="instructions.source: files",
        )
    ]


def check_hub_access(resources: list[HubResource], offline: bool) -> list[CheckResult]:
    """Whether each resource exists at its revision and may be read with this login.

    A hub that cannot be reached is one failure, however many resources there are.
    """
    if offline:
        return [
            failed(
                f"{HUB}, {resource.key}",
                f"'{resource.repository}' is not a local folder, and offline is true; give "
                f"{resource.alternative}, or set offline: false",
            )
            for resource in resources
        ]
    results = []
    for resource in resources:
        result = _check_resource(resource)
        results.append(result)
        if result.check == HUB:
            break
    return results


def _check_resource(resource: HubResource) -> CheckResult:
    from huggingface_hub import HfApi

    check, repository = f"{HUB}, {resource.key}", resource.repository
    api = HfApi()
    try:
        api.auth_check(repository, repo_type=resource.kind)
        info = api.repo_info(
            repository, revision=resource.revision, repo_type=resource.kind, timeout=10
        )
    except Exception as error:  # the hub's library raises many types
        place = (repository, resource.revision, resource.kind)
        if problem := access_problem(error, *place):
            return failed(check, problem)
        # Whatever else it is, the next resource would meet the same.
        problem = hub_problem(error, *place)
        return failed(HUB, f"{problem}, or avoid the hub: {resource.alternative}")
    files = [file.rfilename for file in getattr(info, "siblings", None) or []]
    if resource.kind == "model" and not any(file.endswith(".safetensors") for file in files):
        return failed(
            check,
            f"'{repository}' at '{resource.revision}' has no safetensors weights, and other "
            "formats are not downloaded; name a revision that has them, or give a folder",
        )
    return CheckResult(OK, check, f"'{repository}' at '{resource.revision}' can be read")
