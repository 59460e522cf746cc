"""All checks in order."""

from pathlib import Path

from zerogap.config import Config
from zerogap.families import ModelSize, published_size
from zerogap.pipeline import jobs, targets
from zerogap.pipeline.model_sizes import model_size
from zerogap.pipeline.preflight import hub, inputs, machine, strategies
from zerogap.pipeline.preflight.result import (
    FAILED,
    CheckResult,
    input_errors_as_failures,
    raise_failures,
)


def run_checks(config: Config) -> list[CheckResult]:
    """Run all checks.

    Raises:
        InputError: a check failed; the message has one line per failure.
    """
    results = all_checks(config)
    raise_failures(results)
    return results


def all_checks(config: Config) -> list[CheckResult]:
    """The results of all checks; none once all long jobs are done."""
    if all(Path(job.output).exists() for job in targets.timed_jobs(config)):
        return []
    resources = hub.hub_resources(config)
    results = hub.check_hub_access(resources, config.offline)
    results += [
        *inputs.check_data_files(config),
        *inputs.check_gguf_files(config),
        *inputs.check_api_keys(config),
        *strategies.check_strategies(config),
        *machine.check_versions(),
        *machine.check_vllm(config),
    ]
    failed_checks = {result.check for result in results if result.status == FAILED}
    sizes: dict[str, ModelSize] = {}
    for model, entry in config.models.items():
        is_local = jobs.base_folder(config, model) is not None
        is_readable = is_local or failed_checks.isdisjoint({hub.HUB, f"{hub.HUB}, models.{model}"})
        if is_readable and (is_local or model in jobs.fetched_models(config)):
            results.append(inputs.check_end_token(config, model))
            results.append(inputs.check_chat_template(config, model))
            results.append(inputs.check_context_length(config, model))
        if is_readable or published_size(entry.base):
            with input_errors_as_failures(results, f"weights of {model}"):
                sizes[model] = model_size(config, model)
    results.append(machine.check_disk_space(config, sizes))
    results += machine.check_gpu_memory(config, sizes, machine.gpu_memories())
    return results
