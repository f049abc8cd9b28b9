"""How good is a ranking? Data sets, removal of views, baselines, judges and metrics.

A ranking is judged without the service: take incomplete views, keep the best features of each,
cluster what is left, and compare the clusters with the known classes.

    data         data sets and published masks, read from a directory that the user names
    builtin      data sets that need no files
    removal      take views away from instances at random
    problem      the protocol: removal, chunks, judges
    baselines    simple scores that a selector has to beat (omvfs: an online rival)
    methods      the registry of everything that is compared
    graphs       nearest-neighbour graphs of the present rows
    judges       cluster incomplete views (gimc: the longer of the two)
    metrics      clusters against classes
    merging      a stream in partitions: their merged models against one model
    learn        the only module that imports scikit-learn (extra ``evaluate``)
    plan, store  what is to be measured, and what has been
    experiments  one module for each question
    run          measure what is missing
    report       tables and figures, from the store alone
    evaluation   all of it: what ``stream-fs evaluate`` does

Nothing in the service imports this package.
"""
