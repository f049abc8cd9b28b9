"""What the source must not do, wherever it stands; ruff's S rules look for more of the kind."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "stream_fs"
SOURCES = sorted(str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py"))
MODULES = {
    "pickle",
    "cPickle",
    "dill",
    "cloudpickle",
    "marshal",
    "shelve",
    "dbm",
    "xmlrpc",
    "ftplib",
}
"""Reading with these runs what is read, or trusts the network."""
BUILTINS = {"eval", "exec", "compile", "__import__"}
CALLS = {"os.system", "os.popen", "yaml.load", "yaml.full_load", "joblib.load", "tempfile.mktemp"}


def name_of(node: ast.expr) -> str:
    """`a.b.c` as it is written; empty where it is none."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return ""


def imported(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module:
        yield node.module.partition(".")[0]


def keywords(call: ast.Call) -> dict[str, object]:
    """The arguments that are given by name as constants; others as their kind."""
    return {
        word.arg: word.value.value if isinstance(word.value, ast.Constant) else type(word.value)
        for word in call.keywords
        if word.arg is not None
    }


def narrows(test: ast.expr) -> bool:
    """Whether an assertion only narrows a type, and so can be removed."""
    if isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot):
        return isinstance(test.comparators[0], ast.Constant) and test.comparators[0].value is None
    return isinstance(test, ast.Call) and name_of(test.func) == "isinstance"


def wrongs(tree: ast.AST) -> Iterator[str]:
    # At the top of a module an assertion is about the module itself, and no input reaches it.
    outer = {id(node) for node in ast.iter_child_nodes(tree)}
    for node in ast.walk(tree):
        place = getattr(node, "lineno", 0)
        for module in imported(node):
            if module in MODULES:
                yield f"{place}: imports {module}"
        if isinstance(node, ast.Assert) and not narrows(node.test) and id(node) not in outer:
            yield f"{place}: an assertion that decides something"
        if not isinstance(node, ast.Call):
            continue
        name, words = name_of(node.func), keywords(node)
        if name in BUILTINS or name in CALLS:
            yield f"{place}: calls {name}"
        if words.get("shell", False) is not False:
            yield f"{place}: a shell"
        if words.get("allow_pickle", False) is not False:
            yield f"{place}: pickles in arrays"
        if name.endswith("np.load") and "allow_pickle" not in words:
            yield f"{place}: np.load without a word on pickles"
        if words.get("verify", True) is False:
            yield f"{place}: certificates that are not verified"


@pytest.mark.parametrize("path", SOURCES)
def test_the_source_does_nothing_of_the_kind(path: str) -> None:
    assert list(wrongs(ast.parse((PACKAGE / path).read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "from marshal import loads",
        "eval('1')",
        "def f(x): exec(x)",
        "import os\nos.system('ls')",
        "import subprocess\nsubprocess.run('ls', shell=True)",
        "import subprocess\nsubprocess.run('ls', shell=some)",
        "import yaml\nyaml.load(x)",
        "np.load(x)",
        "np.load(x, allow_pickle=True)",
        "np.savez(x, allow_pickle=maybe)",
        "def f(x):\n    assert x > 1",
        "get(url, verify=False)",
    ],
)
def test_each_of_them_would_be_found(source: str) -> None:
    assert list(wrongs(ast.parse(source)))


@pytest.mark.parametrize(
    "source",
    ["def f(x):\n    assert x is not None, 'why'", "assert set(A) == set(B)", "f(shell=False)"],
)
def test_and_nothing_else(source: str) -> None:
    assert not list(wrongs(ast.parse(source)))
