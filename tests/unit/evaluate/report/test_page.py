from stream_fs.evaluate.report.page import (
    PageSection,
    Table,
    number,
    render_html,
    render_markdown,
    signed,
    with_error,
)
from stream_fs.evaluate.report.results import (
    estimate,
)


def test_markup_in_a_table_is_text() -> None:
    table = Table("<b>", ["a|b"], [["<script>"]], "1 < 2")
    page = render_html([PageSection("s", tables=[table])])
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "| a\\|b |" in render_markdown([PageSection("s", tables=[table])])


def test_figures_in_tables() -> None:
    assert number(0.12345) == "0.123"
    assert number(float("nan")) == "–"
    assert signed(0.1) == "+0.100"
    assert with_error(estimate([1.0, 3.0])) == "2.000 ± 1.000"
    assert with_error(estimate([1.0])) == "1.000"


def test_figures_are_aligned_to_the_right_and_results_are_coloured() -> None:
    rows = [["a", "0.1*", "met"], ["b", "–", "not met"]]
    table = Table("t", ["name", "value", "result"], rows, strong="b")
    page = render_html([PageSection("s", tables=[table])])
    assert '<td class="figures">0.1<span class="mark">*</span></td>' in page
    assert '<td class="words good">met</td>' in page
    assert '<tr class="strong"><td class="words">b</td>' in page
