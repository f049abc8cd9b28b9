"""The report: one HTML page and the same tables as Markdown, from the stored rows alone.

page             tables, figures and sections, as HTML (``page.html.jinja``) and as Markdown
results          what the report is written from, and the statistics
main_comparison  tables of the main comparison (experiment ranking)
goals            the goals, and the comparison with variance
paper_figures    the paper's own figures beside those measured here
synthetic        planted features, stability and drift (traits, stability, drift)
cost             the cost of an update (speed, convergence)
parameters       the effect of parts and settings (ablation, missing, sensitivity, grid, judging)
merging          merged partitions (merging, merging-long)
negative_results changes of the method that were rejected
contents         the sections in their order
"""
