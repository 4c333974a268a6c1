"""The contracts, and what the published database promises to those who query it."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sql
from tests.kit import row, rows_in
from warehouse import Reader, Warehouse
from warehouse.columns import COLUMNS
from warehouse.tables import TABLES

PROMISED = """
    tasks: benchmark dataset_revision task_id field topic expert turns splits decision_types economic_pathways
        n_criteria positive_weight negative_weight has_reference_texts is_admitted content_hash
    criteria: benchmark dataset_revision task_id criterion_id position title category weight severity content_hash
    messages: task_id conversation_id position role content
    quarantine: benchmark dataset_revision task_id check_name severity detail
    checks: run_id suite expectation table_name severity success n_evaluated n_failed failing_keys
    responses: response_id benchmark dataset_revision task_id conversation_id model model_config_hash served_model trial
        vintage source import_batch status text chars_alnum finish_reason degraded prompt_tokens cached_tokens
        completion_tokens reasoning_tokens cost_usd latency_s attempts error run_id created_at
    verdicts: verdict_id response_id benchmark dataset_revision task_id criterion_id criterion_hash model trial vintage
        judge judge_config_hash served_model template_hash grading judge_trial source status value explanation
        prompt_tokens cached_tokens completion_tokens cost_usd latency_s attempts error run_id created_at
    verdict_details: verdict_id response_id benchmark dataset_revision task_id criterion_id model trial vintage judge
        template_hash grading judge_trial status value explanation title weight severity category topic field
        response_text
    scores: response_id benchmark dataset_revision task_id model trial vintage judge template_hash grading judge_trial
        score_name value value_lower value_upper coverage is_complete
    category_scores: response_id benchmark dataset_revision task_id model trial vintage judge template_hash grading
        judge_trial score_name value value_lower value_upper coverage is_complete category
    leaderboard: benchmark dataset_revision split judge judge_config_hash template_hash grading judge_trial vintage
        model model_config_hash score_name is_primary n_tasks n_tasks_wanted n_trials mean_score ci_low ci_high coverage
        mean_chars_alnum cost_usd rank n_tasks_ranked
    judge_agreement: grader_a grader_b n kappa macro_f1 agreement
    hard_subset: selection_id benchmark dataset_revision field task_id rank mean_score n_models selected_at
    runs: run_id command config git_commit started_at ended_at outcome responses_made verdicts_made cost_usd
"""
"""Table -> the columns that others rely on (the public interface, copied here as facts)."""

KEPT = [model for model in sql.models() if model.kind != "step"]
"""Models that are in the published file."""

INTERNAL = {"published_parts", "published_from"}
"""Tables by which the publisher knows what a file holds."""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    warehouse = Warehouse(tmp_path_factory.mktemp("warehouse"))
    warehouse.write("runs", [row("runs", command="run")])
    warehouse.publish()
    with warehouse.reader() as reader:
        yield reader


def columns_of(reader: Reader, table_name: str) -> set[str]:
    rows = reader.rows("select column_name from information_schema.columns where table_name = ?", [table_name])
    return {each["column_name"] for each in rows}


def test_the_promised_columns_are_there(published: Reader) -> None:
    tables = re.findall(r"(\w+):([\w\s]*)(?=\n    \w+:|\Z)", PROMISED)
    lacking = [(name, column) for name, of in tables for column in set(of.split()) - columns_of(published, name)]

    assert 14 == len(tables)
    assert [] == lacking


def test_every_table_view_and_column_says_in_the_database_what_it_is(published: Reader) -> None:
    silent = published.rows(
        """
        select table_name as name, null as part, comment from duckdb_tables() where database_name = 'published'
        union all
        select view_name, null, comment from duckdb_views() where database_name = 'published' and not internal
        union all
        select table_name, column_name, comment from duckdb_columns()
        where database_name = 'published' and schema_name = 'main' and not internal
        """
    )

    assert [] == [
        (each["name"], each["part"])
        for each in silent
        if each["name"] not in INTERNAL and not (each["comment"] or "").strip()
    ]


def test_every_table_and_model_is_in_the_database_and_users_see_tables_and_marts_alone(published: Reader) -> None:
    each = published.rows(
        "select table_schema, table_name from information_schema.tables where table_catalog = 'published'"
    )
    present = {f"{each['table_schema']}.{each['table_name']}".removeprefix("main.") for each in each}
    shown = {each["name"] for each in published.rows("show tables")}

    assert {*TABLES, *(model.name for model in KEPT), *INTERNAL} == present
    assert {*TABLES, *sql.schema()["marts"], *INTERNAL} == shown


def test_every_model_that_users_do_not_see_says_what_one_row_is() -> None:
    unseen = [model for model in sql.models() if "." in model.name]

    assert unseen
    assert [] == [model.name for model in unseen if not model.meaning.startswith("One row: ")]


def test_no_column_has_a_type_that_other_programs_take_for_something_else(published: Reader) -> None:
    odd = published.rows(
        "select table_name, column_name, data_type from duckdb_columns() where database_name = 'published' "
        "and not internal and regexp_matches(data_type, 'HUGEINT|DECIMAL') and not ends_with(column_name, 'basis')"
    )

    assert [] == odd


def test_every_column_of_the_contracts_has_a_meaning_and_is_used() -> None:
    used = {column for table in TABLES.values() for column in table.columns}

    assert [] == [name for name, (_, meaning) in COLUMNS.items() if not meaning.strip()]
    assert set(COLUMNS) == used


def test_every_column_that_schema_yml_describes_exists(published: Reader) -> None:
    described = [(model.name, column) for model in KEPT for column in model.columns]
    assert [] == [(name, column) for name, column in described if column not in columns_of(published, name)]


def test_no_table_that_holds_a_text_of_a_task_holds_its_canary(published: Reader) -> None:
    texts = {"prompt", "content", "title", "text", "response_text", "scratchpad"}
    tables = {*TABLES, *(model.name.rpartition(".")[2] for model in sql.models())}

    assert [] == [name for name in tables if "canary" in (each := columns_of(published, name)) and each & texts]


OLDEST_CLIENT = ["--with", "duckdb==1.2.2", "--with", "pytz"]
READ_ALL = """
import sys, duckdb
client = duckdb.connect(sys.argv[1], read_only=True)
for schema, name in client.execute("select table_schema, table_name from information_schema.tables").fetchall():
    client.execute(f"from {schema}.{name} limit 1").fetchall()
    print(f"{schema}.{name}")
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv, to get the oldest client")
def test_the_oldest_client_reads_every_table_and_view(tmp_path: Path) -> None:
    warehouse = Warehouse(tmp_path)
    warehouse.write("runs", [row("runs", run_id="a-run")])
    warehouse.publish()
    query = "select concat(table_schema, '.', table_name) as name from information_schema.tables where table_catalog = "
    held = {each["name"] for each in rows_in(warehouse.root, f"{query}current_database()")}

    client = subprocess.run(
        ["uv", "run", "--quiet", "--no-project", "--python", sys.executable, *OLDEST_CLIENT, "python", "-c", READ_ALL,
         str(warehouse.database)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert (0, "") == (client.returncode, client.stderr)
    assert held == set(client.stdout.split())
