"""Tables, figures and the claims sheet of a run.

:mod:`zerogap.reporting.catalog` lists every table and figure with its inputs, function and caption.
Tables are data (:class:`zerogap.reporting.render.Table`) until they are rendered as CSV, Markdown,
LaTeX and HTML.
"""
