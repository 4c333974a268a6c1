"""An invalid configuration is refused in one line with the path of the key."""

from pathlib import Path

import pytest
import yaml

from flows.cli.doctor_checks import examine
from flows.cli.run import next_commands
from flows.run.arguments import Arguments
from flows.run.config import load_job
from flows.run.settings_problems import sound_settings
from tasks.config.settings import Settings
from tasks.figures.shown.corrections import judge_entry
from tasks.rules.errors import UsageError
from tasks.run.run_context import callees
from tests.golden.outputs import kept
from tests.kit import prepared, row
from warehouse import Warehouse

BILLION_LAUGHS = "a0: &a0 [x]\n"
for number in range(1, 12):
    references = f"*a{number - 1}," * 9
    BILLION_LAUGHS += f"a{number}: &a{number} [{references}]\n"
TWO = """
models: [{name: openai/a, label: a}, {name: openai/b, label: b}]
judges: [{name: openai/j}]
"""


@pytest.fixture
def file(tmp_path, monkeypatch) -> Path:
    """The path of a configuration in the current folder; no API key is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path / "night.yaml"


def refusal(arguments: Arguments) -> str:
    with pytest.raises(UsageError) as refused:
        load_job(arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_mistyped_benchmark_is_reported_before_a_missing_data_set(file):
    file.write_text("trials: 1")

    assert "helathbench" in refusal(Arguments(config=file, benchmark="helathbench"))


@pytest.mark.parametrize(
    ("text", "path"),
    yaml.safe_load(Path(__file__).with_name("refused.yaml").read_text()).items(),
)
def test_what_is_impossible_is_refused_with_the_path_of_the_key(file, text, path):
    configured(text, file)

    assert refusal(Arguments(config=file)).startswith(f"{file}: {path}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "dataset: {source: hub, splits: [finance]}",
            "dataset: source hub needs `revision`",
        ),
        (
            "dataset: {source: x.jsonl, files: {a: b.jsonl}}",
            "dataset: `files` belongs to source hub",
        ),
        (
            "dataset: {revision: abc, files: {a: b.jsonl}, splits: [a, c]}",
            "dataset: `splits` names 'c', for which `files`",
        ),
        (
            "models: [{name: a/b, api_base: ''}]\ndataset: {source: sample}",
            "models[0].api_base: ",
        ),
        ("trials: 3", "dataset: is missing"),
        (
            "dataset: {source: sample}\ndataset: {source: hub}",
            "not valid YAML: key 'dataset' appears twice in ",
        ),
        ("a: {b: 1\nc: 2", "not valid YAML: while parsing a flow mapping in "),
        ("just words", "holds no settings"),
        (f"a: {'[' * 300}{']' * 300}", "is nested too deeply"),
        (f"a: {'[' * 5_000}{']' * 5_000}", "is nested too deeply"),
        ("a: &a [*a]", "is nested too deeply"),
        (
            "".join(f"{' ' * depth}a:\n" for depth in range(1_000)),
            "is nested too deeply",
        ),
        (BILLION_LAUGHS, "is nested too deeply"),
    ],
)
def test_a_file_that_says_nothing_usable_is_refused(file, text, message):
    file.write_text(text)

    assert refusal(Arguments(config=file)).startswith(f"{file}: {message}")


@pytest.mark.usefixtures("file")
def test_without_a_file_the_embedded_default_stands():
    settings = load_job(Arguments()).settings

    [model] = settings.models
    [judge] = settings.judges
    assert model.name == "embedded/smollm2-135m-instruct"
    assert judge.name == "embedded/smollm2-135m-instruct"
    assert settings.dataset.source == "sample"
    assert settings.trials == 1


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """The current folder, with its own home directory, and a folder `sub` for `night.yaml`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRBENCH_WAREHOUSE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "sub").mkdir()
    return tmp_path


NIGHT = Path("sub", "night.yaml")


def configured(text: str = "", file: Path = NIGHT) -> Path:
    file.write_text(f"dataset: {{source: sample}}\n{text}")
    return file


@pytest.mark.parametrize(
    ("setting", "environment", "option", "path", "source"),
    [
        ("", "", None, "sub/warehouse/data", "default, beside sub/night.yaml"),
        ("", "from/environment", None, "from/environment", "PRBENCH_WAREHOUSE"),
        (
            "warehouse: mine",
            "from/environment",
            None,
            "sub/mine",
            "`warehouse` in sub/night.yaml",
        ),
        ("warehouse: mine", "from/environment", "asked", "asked", "--warehouse"),
        (
            "warehouse: ~/evals",
            "",
            None,
            "home/evals",
            "`warehouse` in sub/night.yaml",
        ),
    ],
)
def test_an_option_goes_before_the_configuration_and_that_before_the_environment(
    folder,
    monkeypatch,
    setting,
    environment,
    option,
    path,
    source,
):
    monkeypatch.setenv("PRBENCH_WAREHOUSE", environment)

    job = load_job(Arguments(config=configured(setting), warehouse=option))

    assert job.warehouse == folder / path
    assert job.warehouse_source == source


def test_rows_of_the_embedded_default_are_not_beside_ones_own(folder):
    job = load_job(Arguments())
    configured(file=Path("prbench.yaml"))
    configured_job = load_job(Arguments())

    assert job.warehouse == folder / "warehouse/embedded"
    assert job.warehouse_source == "default without a configuration"
    assert configured_job.warehouse == folder / "warehouse/data"


def test_data_that_is_stored_here_is_shown_without_a_configuration_too(folder):
    (folder / "warehouse/data").mkdir(parents=True)

    job = load_job(Arguments())

    assert job.warehouse == folder / "warehouse/data"
    assert job.warehouse_source == "default"


@pytest.mark.parametrize(
    ("environment", "option", "path"),
    [
        ("from/environment", None, "from/environment"),
        ("", "warehouse/data", "warehouse/data"),
        ("from/environment", "given", "given"),
    ],
)
def test_a_choice_of_a_folder_holds_for_the_embedded_default(
    folder,
    monkeypatch,
    environment,
    option,
    path,
):
    monkeypatch.setenv("PRBENCH_WAREHOUSE", environment)

    job = load_job(Arguments(warehouse=option))

    assert job.warehouse == folder / path


def test_a_report_is_beside_the_configuration(folder):
    job = load_job(Arguments(config=configured("report: {folder: pages}")))

    assert job.report_folder == folder / "sub/pages"


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("settings", "arguments", "name"),
    [
        ("", {"warehouse": Path("~nobody-at-all/x")}, "--warehouse"),
        ("", {"config": Path("~nobody-at-all/x")}, "--config"),
        ("warehouse: ~nobody-at-all/x", {}, "`warehouse` in sub/night.yaml"),
        ("report: {folder: ~nobody-at-all/x}", {}, "report.folder"),
        (
            "judges: [{name: openai/x, template: ~nobody-at-all/x}]",
            {},
            "sub/night.yaml: judge openai/x: template",
        ),
    ],
)
def test_the_home_of_nobody_is_refused_in_one_line(settings, arguments, name):
    config = configured(settings)

    line = refusal(Arguments(**{"config": config, **arguments}))

    reason = "there is no such user; write the whole path"
    assert line == f"{name}: ~nobody-at-all/x: {reason}"


def test_doctor_and_status_name_the_data_folder_and_its_source(
    folder,
    monkeypatch,
    run,
):
    monkeypatch.setenv("PRBENCH_WAREHOUSE", "elsewhere")
    job = prepared(load_job(Arguments()))

    findings = examine(job)
    output = run("status")

    details = {finding.subject: finding.detail for finding in findings}
    assert details["data folder"] == f"{folder / 'elsewhere'} (PRBENCH_WAREHOUSE)"
    assert f"Warehouse: {folder / 'elsewhere'} (PRBENCH_WAREHOUSE)\n" in output


@pytest.mark.usefixtures("folder")
def test_status_names_a_judge_that_was_switched_off(run):
    configured(
        "judges: [{name: openai/x, label: strict, retires_on: 2026-01-14}]",
        Path("prbench.yaml"),
    )
    prepared(load_job(Arguments()))

    output = run("status")

    assert (
        "judge strict: openai/x was switched off on 2026-01-14 (`retires_on`)"
        in output
    )


@pytest.mark.usefixtures("folder")
def test_commands_to_try_next_begin_as_this_one_did(monkeypatch):
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")

    assert next_commands(Arguments()).startswith("uv run prbench leaderboard")


def test_a_configuration_is_to_try_next_where_there_is_none(folder):
    without_any = next_commands(Arguments())
    with_another = next_commands(Arguments(config=Path("another.yaml")))
    (folder / "prbench.yaml").touch()
    with_its_own = next_commands(Arguments())

    assert "cp prbench.example.yaml prbench.yaml" in without_any
    assert "cp prbench.example.yaml" not in with_another
    assert "cp prbench.example.yaml" not in with_its_own


def test_commands_to_try_next_are_about_the_same_data(tmp_path):
    arguments = Arguments(Path("my night.yaml"), "kitchen", warehouse=tmp_path)

    leaderboard, query = next_commands(arguments).splitlines()

    assert leaderboard.endswith(
        f" --by category --config 'my night.yaml' --warehouse {tmp_path} --benchmark kitchen"
    )
    assert f"prbench sql --config 'my night.yaml' --warehouse {tmp_path} " in query


def test_doctor_names_a_path_that_is_not_there_and_missing_keys(file):
    file.write_text(
        "dataset: {source: nowhere.jsonl}\nmodels: []\njudges: [{name: openai/y}]\n"
    )
    job = load_job(Arguments(config=file, warehouse=file.parent / "data"))

    findings = {finding.subject: finding for finding in examine(job)}

    assert findings["data set"].is_ok is False
    assert findings["data set"].detail.startswith("nowhere.jsonl is not a file")
    assert findings["judge openai/y"].is_ok is False
    assert findings["judge openai/y"].detail == "OPENAI_API_KEY is not set; export it"
    assert findings["configuration"].detail == "prbench, 0 models, 1 judge, trials 1"


def test_an_imported_model_calls_nobody_and_survives_being_stored(file):
    configured("models: [{label: x, source: imported}]", file)

    job = load_job(Arguments(config=file))

    assert list(callees(job)) == []
    assert (
        Settings.model_validate(job.settings.model_dump(mode="json")) == job.settings
    )


def test_models_that_are_named_narrow_what_is_evaluated_and_not_what_is_compared(
    file,
):
    configured(f"{TWO}stopping: {{pairs: [[a, b]]}}", file)

    job = load_job(Arguments(config=file, named_models=("b",)))

    assert [model.label for model in job.settings.models] == ["b"]
    assert [model.label for model in job.compared_models] == ["a", "b"]


def test_a_rule_that_cascade_picks_can_be_pasted_into_the_configuration():
    output = "\n".join(
        kept()["world/shown/cascade mild-judge strict-judge --bound agreement=0.8"]
    )
    judges = yaml.safe_load(output.partition("beside both judges:\n")[2])
    for label in ("mild-judge", "strict-judge"):
        judges.append({"name": f"openai/{label}", "label": label})

    settings, problems = sound_settings(
        {"dataset": {"source": "sample"}, "judges": judges}
    )

    assert problems == []
    assert settings is not None
    assert len(settings.judges) == 1


def test_a_judge_to_paste_keeps_the_letters_of_its_label():
    assert judge_entry({"label": "größer"}) == "- label: größer\n"


def test_the_problems_of_keys_are_reported_together(file):
    configured("trials: 0\nlimits: {tials: 1}\n", file)

    error = refusal(Arguments(config=file))

    assert "trials: Input should be greater" in error
    assert "limits.tials: there is no such key (did you mean `trials`?)" in error


@pytest.mark.parametrize(
    "arguments", [{"splits": ("a",)}, {"max_usd": 3.0}, {"max_tokens": 3}]
)
def test_an_option_beside_a_section_that_is_no_mapping_hides_no_problem(
    arguments, file
):
    file.write_text("dataset: data.jsonl\nlimits: 5\n")

    error = refusal(Arguments(config=file, **arguments))

    assert "dataset: Input should be a valid dictionary" in error
    assert "limits: Input should be a valid dictionary" in error


def test_a_missing_data_set_is_reported_with_other_problems(file):
    file.write_text("judges: [{name: a, source: b}]\n")

    error = refusal(Arguments(config=file))

    assert "judges[0].source: there is no such key; dataset" in error


def test_the_problems_of_models_and_judges_are_reported_together(file):
    models = "models: [{name: a, label: x}, {name: b, label: x}]\n"
    configured(
        f"{models}judges: [{{name: a, rubric: augmented}}, {{name: a}}]\n", file
    )

    error = refusal(Arguments(config=file))

    assert "models: label 'x' is used" in error
    assert "judges: label 'a' is used" in error
    assert "judge a has `rubric: augmented`" in error


def test_a_folder_that_is_neither_empty_nor_a_warehouse_is_refused_and_stays_as_it_is(
    tmp_path,
):
    (tmp_path / "apt").mkdir()

    error = refusal(Arguments(warehouse=tmp_path))

    beginning = f"warehouse {tmp_path} (--warehouse)"
    assert f"{beginning}: contains apt and is no warehouse" in error
    assert list(tmp_path.iterdir()) == [tmp_path / "apt"]


def test_a_new_disk_is_an_empty_folder(tmp_path):
    (tmp_path / "lost+found").mkdir()
    (tmp_path / ".snapshots").mkdir()

    assert load_job(Arguments(warehouse=tmp_path)).warehouse == tmp_path


def test_other_files_in_a_warehouse_are_left_alone(tmp_path):
    Warehouse(tmp_path).write("runs", [row("runs", command="run")])
    (tmp_path / "notes.txt").touch()

    assert load_job(Arguments(warehouse=tmp_path)).warehouse == tmp_path
