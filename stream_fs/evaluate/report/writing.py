"""Write the report's files from the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from stream_fs.evaluate.experiments import EXPERIMENTS
from stream_fs.evaluate.plan import Entry, Options, Task
from stream_fs.evaluate.report.contents import Progress, sections
from stream_fs.evaluate.report.page import html, markdown
from stream_fs.evaluate.report.published import read_published
from stream_fs.evaluate.store import Store

PAGE = "report.html"
TEXT = "report.md"


def write_report(
    store: Store, tasks: Sequence[Task], entries: Sequence[Entry], options: Options
) -> Path:
    """``report.html``, ``report.md`` and a CSV per experiment; the path of the page."""
    for name in EXPERIMENTS:
        store.write_csv(tasks, name)
    rows = {name: store.rows(tasks, name) for name in EXPERIMENTS}
    progress = Progress(sum(task in store for task in tasks), len(tasks))
    published = read_published(store.directory)
    found = sections(rows, entries, options, published, progress, store.refused(tasks))
    page = store.directory / PAGE
    page.write_text(html(found), encoding="utf-8")
    (store.directory / TEXT).write_text(markdown(found), encoding="utf-8")
    return page
