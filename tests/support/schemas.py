"""Validators of the published schemas."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

SCHEMAS = Path(__file__).parents[2] / "schemas"


@cache
def validator(name: str) -> Any:
    schema = json.loads((SCHEMAS / f"{name}.v1.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def errors_in(name: str, plain: object) -> list[str]:
    return [error.message for error in validator(name).iter_errors(plain)]
