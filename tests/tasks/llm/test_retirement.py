"""The days on which providers switch models off."""

import re
from datetime import date, timedelta

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.llm import litellm_setup
from tasks.llm.request import Target, table_entry
from tasks.llm.retirement import retirement_date, retirement_notice
from tasks.run.run_context import callees, retirements
from tests.flows.conftest import commands_of
from tests.kit import ROOT, tracked_files
from tests.tasks.llm.conftest import call_to, failed

TODAY = date(2026, 11, 28)
A_YEAR = timedelta(days=365)
MODEL_NAME = re.compile(
    r"\b(?:(?:gpt|claude|gemini)-[a-z0-9.-]*\d[a-z0-9.-]*|o\d(?:-mini|-pro)?)\b(?!\.json)"
)


@pytest.fixture(autouse=True)
def dates(monkeypatch):
    """A table of LiteLLM with known days, whatever its version says."""
    table = {
        "ended": {"litellm_provider": "openai", "deprecation_date": "2026-10-23"},
        "today": {"litellm_provider": "openai", "deprecation_date": "2026-11-28"},
        "soon": {"litellm_provider": "openai", "deprecation_date": "2027-02-26"},
        "later": {"litellm_provider": "openai", "deprecation_date": "2027-02-27"},
        "endless": {"litellm_provider": "openai"},
        "alias": {"alias_of": "ended"},
        "twin": {
            "litellm_provider": "vertex_ai-language-models",
            "deprecation_date": "2026-10-20",
        },
        "hosted_vllm/old": {
            "litellm_provider": "hosted_vllm",
            "deprecation_date": "2026-10-23",
        },
        "gemini/twin": {
            "litellm_provider": "gemini",
            "deprecation_date": "2026-12-01",
        },
    }
    for name, entry in table.items():
        monkeypatch.setitem(litellm_setup.model_table(), name, entry)


@pytest.mark.parametrize(
    ("name", "last_day"),
    [
        ("ended", date(2026, 10, 23)),
        ("openai/ended", date(2026, 10, 23)),
        ("alias", date(2026, 10, 23)),
        ("hosted_vllm/ended", None),
        ("openai/endless", None),
        ("openai/no-such-model", None),
        ("vertex_ai/twin", date(2026, 10, 20)),
        ("gemini/twin", date(2026, 12, 1)),
        ("openai/twin", None),
    ],
)
def test_the_day_is_that_of_the_entry_to_which_litellm_routes(name, last_day):
    assert retirement_date(Target(name)) == last_day


def test_a_server_of_ones_own_that_speaks_openai_s_protocol_has_no_known_end():
    openai = Target("openai/ended", "http://localhost:8000/v1")
    gemini = Target("gemini/twin", "https://gemini.example.org")

    assert retirement_date(openai) is None
    assert retirement_date(gemini) == date(2026, 12, 1)


def test_a_configured_day_replaces_that_of_the_table():
    ended = Target("openai/ended", retires_on=date(2026, 12, 24))
    own_server = Target(
        "openai/ended", "http://localhost:8000/v1", retires_on=date(2026, 12, 24)
    )

    assert retirement_date(ended) == date(2026, 12, 24)
    assert retirement_date(own_server) == date(2026, 12, 24)
    expected = "openai/ended will be switched off on 2026-12-24 (`retires_on`)"
    assert retirement_notice(ended, TODAY) == expected


def test_the_configured_day_is_that_of_the_calls_and_no_part_of_the_identity(
    tmp_path,
):
    file = tmp_path / "prbench.yaml"
    file.write_text(
        "dataset: {source: sample}\n"
        "models:\n"
        "- {name: openai/a, label: a, retires_on: 2026-12-24}\n"
        "- {name: openai/a, label: b}\n"
    )

    job = load_job(Arguments(config=file))

    with_day, without_day = [callee.target for callee in callees(job)]

    assert with_day.retires_on == date(2026, 12, 24)
    assert with_day.config_hash == without_day.config_hash


@pytest.mark.parametrize(
    ("name", "beginning"),
    [
        ("openai/ended", "openai/ended was switched off on 2026-10-23 ("),
        ("openai/today", f"openai/today was switched off on {TODAY} ("),
        ("openai/soon", "openai/soon will be switched off on 2027-02-26 ("),
    ],
)
def test_an_end_within_90_days_is_announced(name, beginning):
    notice = retirement_notice(Target(name), TODAY)

    assert str(notice).startswith(beginning)


@pytest.mark.parametrize("name", ["openai/later", "openai/endless"])
def test_a_later_end_is_not_announced(name):
    assert retirement_notice(Target(name), TODAY) is None


def test_each_configured_model_that_ends_has_a_line_with_the_day_and_what_to_do(
    tmp_path,
):
    file = tmp_path / "prbench.yaml"
    file.write_text(
        "dataset: {source: sample}\n"
        "models: [{name: openai/soon, label: a}, {name: openai/endless, label: b},"
        " {name: openai/ended, label: e}]\n"
        "judges: [{name: openai/ended, label: c}, {name: openai/soon, label: d}]\n",
        encoding="utf-8",
    )

    job = load_job(Arguments(config=file))

    lines = {end.callee.label: end.line for end in retirements(job, TODAY)}

    assert lines["a"].endswith(
        "make the calls that are still needed before that day, and choose its successor"
    )
    assert "b" not in lines
    assert lines["e"].endswith("configure another one (stored results stay)")
    for label in ("c", "d"):
        assert f"`prbench succeed {label} NEW` shows what changes" in lines[label]


@pytest.mark.parametrize("status", [400, 403, 404])
def test_a_refused_call_to_a_model_that_has_ended_names_the_day(
    status, calling, serve
):
    server = serve(failed(status, "The model is not available."))

    reply = calling(call_to(server, name="hosted_vllm/old"))

    assert "hosted_vllm/old was switched off on 2026-10-23" in str(reply.error)


def test_a_refused_call_to_another_model_names_no_day(calling, serve):
    server = serve(failed(404, "The model is not available."))

    reply = calling(call_to(server, name="openai/endless"))

    assert "switched off" not in str(reply.error)


def names_in_examples() -> set[str]:
    """The names of models in help, documents and the example of a configuration."""
    texts = [str(command.help) for _, command in commands_of()]
    for path in tracked_files():
        is_document = path.suffix == ".md" and path.parts[0] in {"README.md", "flows"}
        if is_document or path.name == "prbench.example.yaml":
            texts.append((ROOT / path).read_text(encoding="utf-8"))
    return set(MODEL_NAME.findall("\n".join(texts)))


def test_no_example_names_a_model_that_ends_within_a_year():
    names = {name for name in names_in_examples() if table_entry(name)}
    last_days = {name: retirement_date(Target(name)) for name in names}

    soon_ending = [
        name for name, day in last_days.items() if day and day < TODAY + A_YEAR
    ]
    assert {"gpt-5.6-sol", "gpt-5.6-terra"} <= names
    assert soon_ending == []
