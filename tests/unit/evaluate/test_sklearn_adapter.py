import subprocess
import sys


def test_without_scikit_learn_the_error_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['sklearn'] = None\n"
        "from stream_fs.evaluate.errors import ExtraMissing\n"
        "try:\n    import stream_fs.evaluate.judges\n"
        "except ExtraMissing as error:\n    print(error)\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert "stream-fs[evaluate]" in result.stdout
