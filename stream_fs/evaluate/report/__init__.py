"""The report: one HTML page and the same tables as Markdown, from the rows in the store alone.

rows         an experiment's rows, made comparable
refusals     methods that could not be run on a data set
cells        the main comparison's rows as paired means
tables       a table, as HTML and as Markdown
plots        figures, embedded
compared     tables of the main comparison
goals        what is to be reached, and whether it is
variance     where variance is as good
published    the paper's own figures beside ours
planted      planted features and stability
drifting     drift, and the decay that is recommended
speed        incremental speed-up and convergence
ablation     what every part is worth
sensitivity  missing instances, parameters, the judge's settings
merging      merged partitions
tried        what is not in
others       the other experiments' tables, by question
contents     all of it, section by section
page         sections as HTML and as Markdown
writing      the files
"""
