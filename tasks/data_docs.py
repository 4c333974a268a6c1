"""Data Docs: the pages of Great Expectations on what the latest checks of a data-set revision found."""

from collections.abc import Iterable, Mapping, Sequence

from expectations import Checked, Outcome, page_name, write_docs
from tasks.rules.records import Invariant
from warehouse import Warehouse

_LATEST = """
    with latest as (
        select
            suite,
            arg_max(run_id, created_at) as run_id
        from checks
        where benchmark = $benchmark and dataset_revision = $dataset_revision
        group by suite
    )
    select
        suite,
        table_name as frame,
        run_id,
        max(created_at) as checked_at,
        max(n_evaluated) as n_rows,
        count(*) as n_expectations,
        count(*) filter (where not success) as n_failed
    from checks
    inner join latest using (suite, run_id)
    where benchmark = $benchmark and dataset_revision = $dataset_revision
    group by all
    order by suite, frame
"""


def has_data_docs(warehouse: Warehouse, key: Mapping[str, str], rules: Iterable[Invariant]) -> bool:
    """Whether every frame that some rules look at has its page.

    Args:
        key: `benchmark` and `dataset_revision`.
    """
    folder = warehouse.data_docs(key["benchmark"], key["dataset_revision"])
    return all((folder / page_name(rule.stage, rule.frame)).exists() for rule in rules)


def write_data_docs(warehouse: Warehouse, key: Mapping[str, str], outcomes: Sequence[Outcome]) -> str | None:
    """Write the pages of what was found now, and the index of all that is published; say so where that fails.

    Args:
        key: `benchmark` and `dataset_revision`.
        outcomes: of checks that are published.
    """
    folder = warehouse.data_docs(key["benchmark"], key["dataset_revision"])
    pages = {(outcome.suite, frame): page for outcome in outcomes for frame, page in outcome.pages.items()}
    try:
        with warehouse.only_one("data-docs", wait=True), warehouse.reader() as reader:
            checked = [Checked(**row) for row in reader.rows(_LATEST, key)]
            write_docs(folder, f"{key['benchmark']}, data-set revision {key['dataset_revision']}", checked, pages)
    except OSError as error:
        return f"{error.filename or folder}: {error.strerror}; the Data Docs there are not those of this check"
    return None
