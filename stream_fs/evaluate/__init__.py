"""Evaluation: rankings are compared with baselines on data with known classes, without the service.

Views are removed from a complete data set, every method ranks the features of what remains, and the
instances are clustered on the best features alone. The agreement of the clusters with the classes
measures the ranking.

    datasets          data sets and published masks in the user's directory, and incomplete views
    builtin_datasets  data sets that need no files
    graphs            nearest-neighbour graphs of the present rows
    judges            clustering of incomplete views, and its agreement with the classes
    protocol          removal of views, chunks, judging of a selection
    methods           what is compared: selectors, baselines, an online rival
    plan              the measurements of a run, and what each depends on
    experiments       one module per experiment
    store             results on disk
    run               measures what is not in the store, and writes the report
    report            tables, figures and text, from the stored rows alone
    sklearn_adapter   the only module that imports scikit-learn (extra ``evaluate``)

The service does not import this package.
"""
