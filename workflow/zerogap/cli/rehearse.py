"""The command `zerogap rehearse`."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Annotated

from zerogap.cli.options import Config, option
from zerogap.errors import InputError, needed_packages


@needed_packages("evaluate,training,workflow")
def rehearse(
    config: Config = None,
    models: Annotated[
        list[str] | None, option("NAME...", "Models of the configuration; default: all.")
    ] = None,
) -> int:
    """Run the workflow up to the metrics on small copies of the models, in minutes.

    The copies have the real tokenizers and architectures and random weights (docs/reproduce.md).
    The results are in results/RUN_rehearsal.
    """
    from zerogap import config as configuration

    files = config or [configuration.paper_config()]
    settings = configuration.load(files)
    for name in models or []:
        if name not in settings.models:
            known = ", ".join(settings.models)
            raise InputError(f"--models: '{name}' is not a model of the configuration ({known})")
    if not Path("Snakefile").is_file():
        raise InputError("the folder has no Snakefile; run the command in a checkout")
    from zerogap.pipeline import rehearse as rehearsal  # imported late: torch takes seconds

    results = Path("results", rehearsal.run_name(settings))
    shutil.rmtree(results, ignore_errors=True)
    chosen = models or list(settings.models)
    overlay, targets = rehearsal.prepare(settings, chosen, results / "rehearsal")
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--configfile", *files, overlay]
    # The jobs call programs of this environment, which may not be activated.
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    status = subprocess.run(  # noqa: S603
        [*map(str, command), "--quiet", "rules", "host", "--", *targets],
        env=os.environ | {"PATH": path},
        check=False,
    ).returncode
    print("the rehearsal failed" if status else "the rehearsal passed")
    return status
