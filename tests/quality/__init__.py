"""How good the rankings are: NMI of clusterings on the selected features, method by method.

    python -m tests.quality --data DIR

DIR holds .npz sets (see ``stream_fs.evaluate.data``). Not part of the test run: it takes minutes.

Protocol, per data set and removal: take half of every view's instances away, at least one view
left per instance; shuffle the rows; let every method score the features; keep 10 … 50 % of them;
cluster with four judges (GIMC_FLSD and spectral, each on raw and on min-max scaled features).
"""
