import re
from collections.abc import Mapping, Sequence

from stream_fs.evaluate.plan import Options, Row
from stream_fs.evaluate.report.contents import SECTIONS, comparable_rows, page_sections
from stream_fs.evaluate.report.page import (
    render_html,
    render_markdown,
)
from stream_fs.evaluate.report.results import Completion, Results
from tests.support.report_rows import (
    ABLATION,
    ENTRIES,
    merging_rows,
    ranking_rows,
)


def results(
    rows: Mapping[str, Sequence[Row]],
    done: int = 1,
    planned: int = 1,
    options: Options | None = None,
) -> Results:
    return Results(rows, ENTRIES, options or Options(), Completion(done, planned))


def test_the_page_is_self_contained() -> None:
    found = page_sections(results({"ranking": ranking_rows()}, 3, 4, Options(rows=3000)))
    page = render_html(found)
    assert not re.search(r'(?:src|href)="(?!data:|#)', page)
    assert not re.search(r"https?:|url\(|@import|<script|<link", page)
    assert page.count("data:image/png;base64,") == 1
    assert "RNE, ASVW, CGMV-UFS, ASE-UFS, CoUFC" in page
    assert "development" in page
    assert "no, recomputed" in page
    text = render_markdown(found)
    assert "3 of 4 measurements have been made." in text
    assert "Data sets of more than 3000 rows" in text
    assert "### Goals, one by one" in text
    assert text.index("## Summary") < text.index("## Data and protocol")
    assert "- Not finished: 3 of 4 measurements have been made." in text


def test_the_same_rows_give_the_same_page() -> None:
    first, again = (
        render_html(page_sections(results({"ranking": ranking_rows()}, 1, 1))) for _ in range(2)
    )
    assert first == again


def test_a_page_without_rows_states_the_plan() -> None:
    page = render_html(page_sections(results({}, 0, 9)))
    assert "0 of 9 measurements" in page
    assert "Goals" not in page
    assert "coding rows by 300 anchors" in page


def test_every_link_of_the_page_has_a_target() -> None:
    page = render_html(page_sections(results({"ranking": ranking_rows()}, 1, 1)))
    places = re.findall(r'href="#([^"]+)"', page)
    assert places
    assert all(f'id="{place}"' in page for place in places)


def test_the_grid_of_the_paper_takes_only_whole_repetitions() -> None:
    grid: list[Row] = [
        {
            "dataset": "3Sources",
            "repetition": repetition,
            "share": 0.1,
            "parameter": parameter,
            "value": 0.1,
            "nmi": nmi,
            "ari": 0.1,
            "f": 0.1,
        }
        for repetition, parameter, nmi in [
            (0, "middle", 0.5),
            (0, "beta", 0.4),
            # Stopped before beta: an easy repetition that only the middle has.
            (1, "middle", 0.9),
        ]
    ]
    found = page_sections(results({"grid": grid}, 3, 4))
    tables = [table for section in found for table in section.tables]
    best = next(table for table in tables if "protocol" in table.title)
    assert list(best.rows[0]) == ["NMI", "3Sources", "here", "0.500"]


def test_tables_compare_only_complete_trials() -> None:
    rows: list[Row] = [
        {"dataset": "a", "repetition": repetition, "variant": variant, "nmi": nmi}
        for repetition, variant, nmi in [
            (0, "as it is", 0.5),
            (0, "no graph", 0.4),
            (1, "as it is", 0.9),
        ]
    ]
    whole = comparable_rows(results({"ablation": rows, "merging": rows}))
    assert [row["nmi"] for row in whole["ablation"]] == [0.5, 0.4]
    assert whole["merging"] == rows


def test_experiments_without_rows_have_no_heading() -> None:
    reported = {section.title for section in SECTIONS}

    def headings(rows: Mapping[str, Sequence[Row]]) -> list[str]:
        titles = [section.title for section in page_sections(results(rows))]
        return [title for title in titles if title in reported]

    assert headings({"traits": [], "ablation": []}) == []
    found = headings({"merging": merging_rows("digits", 2), "ablation": ABLATION})
    assert found == ["Effect of parts and settings", "Merging partitions"]
