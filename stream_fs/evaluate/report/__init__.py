"""The report: one HTML page and the same tables as Markdown, from the rows in the store alone.

cells      the main comparison's rows as paired means
tables     a table, as HTML and as Markdown
plots      figures, embedded
compared   tables of the main comparison, and the goals
published  the paper's own figures beside ours
others     tables of the other experiments
page       all of it together
"""
