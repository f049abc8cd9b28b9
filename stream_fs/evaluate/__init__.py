"""How good is a ranking? Data sets, removal of views, baselines, judges and metrics.

A ranking is judged without the service: take incomplete views, keep the best features of each,
cluster what is left, and compare the clusters with the known classes.

    data       data sets and published masks, read from a directory that the user names
    removal    take views away from instances at random
    baselines  simple scores that a selector has to beat
    graphs     nearest-neighbour graphs of the present rows
    judges     cluster incomplete views (gimc: the longer of the two)
    metrics    clusters against classes
    merging    a stream in partitions: their merged models against one model
    learn      the only module that imports scikit-learn (extra ``evaluate``)

Nothing in the service imports this package.
"""
