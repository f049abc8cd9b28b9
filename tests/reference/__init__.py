"""Dense, slow and obvious forms of the algorithm, which tests compare the selector with."""
