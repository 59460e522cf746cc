"""The figures of the paper and beyond it, one module per figure, with matplotlib."""
