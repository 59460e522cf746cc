"""The parameter file of every job that makes data, models or responses."""


# A job with such a file reruns when the file changes, and not when its code does. The template
# writes the values as JSON and has no influence on them, hence `ancient`.
rule write_parameters:
    """Write the configuration values that a heavy job depends on."""
    input:
        template=ancient("workflow/templates/parameters.json"),
    output:
        "<results>/parameters/{job}.json",
    log:
        "<results>/logs/parameters/{job}.log",
    priority: TRAJECTORIES_FIRST
    localrule: True
    params:
        parameters=lambda wildcards: parameters.job_parameters(CONFIG, wildcards.job),
    message:
        "Parameters of {wildcards.job}"
    template_engine:
        "jinja2"


use rule write_parameters as write_base_parameters with:
    output:
        "<bases>/parameters/{job}.json",
    log:
        "<bases>/logs/parameters/{job}.log",
