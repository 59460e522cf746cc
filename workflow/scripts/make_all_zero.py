"""Make the solve table of All-Zero, which fails every question (paper §5.2.2)."""

from script_helpers import parse_arguments, run
from zerogap.sampling import jobs


def main() -> None:
    args = parse_arguments(__doc__, "clean", "output")
    jobs.make_all_zero(
        clean=args.clean,
        output=args.output,
        **args.parameters,
    )


if __name__ == "__main__":
    run(main)
