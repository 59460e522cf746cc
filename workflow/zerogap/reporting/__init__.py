"""Tables, figures and the claims sheet of a run.

Tables are data (:class:`zerogap.reporting.render.Table`) until they are rendered as CSV, Markdown,
LaTeX and HTML. :mod:`zerogap.pipeline.report` says what each of a run is made of.
"""
