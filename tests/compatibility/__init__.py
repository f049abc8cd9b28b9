"""What users receive and keep stays the same: recordings of an earlier release, and comparisons.

`cases` and `streams` define topics that go in, `replays` files and `arrays` matrices.
`release_0_1_0` runs topics on the earlier release, `present` on this code, `library` the public
selector on either; `releases` starts both. `formats` reads what comes out, without the package, and
`comparison` finds differences.

`python -m tests.compatibility.record OLD_CHECKOUT` writes the files in `recorded`, with which the
tests here compare numbers to a tolerance, as another CPU rounds otherwise.
`python -m tests.compatibility.compare OLD_CHECKOUT` runs both on this machine, and compares bytes.
"""
