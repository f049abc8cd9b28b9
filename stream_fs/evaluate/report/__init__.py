"""The report: one HTML page and the same tables as Markdown, from the stored rows alone.

page             tables, figures and sections, as HTML (``page.html.jinja``) and as Markdown
results          what the report is written from, and the statistics
main_comparison  tables of the main comparison (experiment ranking)
goals            the goals, and the comparison with variance
paper_figures    the paper's own figures beside those measured here
synthetic        what clustering does not show (traits, stability, drift)
cost             what an update costs (speed, convergence)
parameters       what parts and settings are worth (ablation, missing, sensitivity, grid, judging)
merging          merged partitions (merging, merging-long)
negative_results changes of the method that were rejected
contents         the sections in their order
"""
