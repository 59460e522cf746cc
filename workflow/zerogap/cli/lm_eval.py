"""The command `zerogap lm-eval`."""

import textwrap

import typer

from zerogap.errors import InputError


def lm_eval(context: typer.Context) -> None:
    """Run lm-evaluation-harness with the model type `zerogap`; takes the arguments of lm_eval.

    zerogap lm-eval --model zerogap --model_args pretrained=MODEL,strategy=railcap,n=4
    --tasks gsm8k_cot --log_samples --output_path logs (docs/railcap.md#lm-evaluation-harness)
    """
    try:  # imported late: the other commands do without it
        from zerogap.integrations import harness
    except ModuleNotFoundError as error:
        raise InputError(
            f"zerogap lm-eval needs lm-evaluation-harness ({error}); install it as in "
            "docs/railcap.md#lm-evaluation-harness"
        ) from error
    if {"-h", "--help"} & set(context.args):
        print(textwrap.dedent(f"    {lm_eval.__doc__}"))
    harness.run(context.args)
