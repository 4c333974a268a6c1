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
from tasks.ingest import ingest
from tasks.rules.errors import UsageError
from tasks.run.run_context import callees
from tests.flows.conftest import Run
from tests.golden.outputs import kept
from tests.kit import Patch, row
from warehouse import Warehouse

REFUSED = Path(__file__).with_name("refused.yaml")
MODEL = "models: [{name: openai/x%s}]"
TWO = (
    "models: [{name: openai/a, label: a}, {name: openai/b, label: b}]\njudges: [{name: openai/j}]\n"
)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: Patch) -> Path:
    """The path of a configuration in the current folder; no API key is set."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path / "night.yaml"


def refusal(arguments: Arguments) -> str:
    with pytest.raises(UsageError) as refused:
        load_job(arguments)
    assert "\n" not in str(refused.value)
    return str(refused.value)


def test_a_mistyped_benchmark_is_reported_before_a_missing_data_set(file: Path) -> None:
    file.write_text("trials: 1", encoding="utf-8")
    assert "helathbench" in refusal(Arguments(config=file, benchmark="helathbench"))


@pytest.mark.parametrize(
    ("text", "path"), yaml.safe_load(REFUSED.read_text(encoding="utf-8")).items()
)
def test_what_is_impossible_is_refused_with_the_path_of_the_key(
    file: Path, text: str, path: str
) -> None:
    file.write_text("dataset: {source: sample}\n" + text, encoding="utf-8")
    assert refusal(Arguments(config=file)).startswith(f"{file}: {path}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("dataset: {source: hub, splits: [finance]}", "dataset: source hub needs `revision`"),
        (
            "dataset: {source: x.jsonl, files: {a: b.jsonl}}",
            "dataset: `files` belongs to source hub",
        ),
        (
            "dataset: {revision: abc, files: {a: b.jsonl}, splits: [a, c]}",
            "dataset: `splits` names 'c', for which `files`",
        ),
        ("models: [{name: a/b, api_base: ''}]\ndataset: {source: sample}", "models[0].api_base: "),
        ("trials: 3", "dataset: is missing"),
        (
            "dataset: {source: sample}\ndataset: {source: hub}",
            "not valid YAML: key 'dataset' appears twice in ",
        ),
        ("a: {b: 1\nc: 2", "not valid YAML: while parsing a flow mapping in "),
        ("just words", "holds no settings"),
        *(
            (text, "is nested too deeply")
            for text in (
                f"a: {'[' * 300}{']' * 300}",
                f"a: {'[' * 5_000}{']' * 5_000}",
                "a: &a [*a]",
                "".join(f"{' ' * depth}a:\n" for depth in range(1_000)),
                "a0: &a0 [x]\n"
                + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 12)),
            )
        ),
    ],
)
def test_a_file_that_says_nothing_usable_is_refused(file: Path, text: str, message: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert refusal(Arguments(config=file)).startswith(f"{file}: {message}")


@pytest.mark.usefixtures("file")
def test_without_a_file_the_embedded_default_stands() -> None:
    job = load_job(Arguments())
    models = (*job.settings.models, *job.settings.judges)
    assert [model.name for model in models] == ["embedded/smollm2-135m-instruct"] * 2
    assert job.settings.dataset.source == "sample"
    assert job.settings.trials == 1


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: Patch) -> Path:
    """The current folder, with its own home directory, and a folder `sub` for `night.yaml`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRBENCH_WAREHOUSE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "sub").mkdir()
    return tmp_path


NIGHT = Path("sub", "night.yaml")


def configured(text: str = "", file: Path = NIGHT) -> Path:
    file.write_text(f"dataset: {{source: sample}}\n{text}", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("setting", "environment", "option", "chosen", "why"),
    [
        ("", "", None, "sub/warehouse/data", "default, beside sub/night.yaml"),
        ("", "from/environment", None, "from/environment", "PRBENCH_WAREHOUSE"),
        ("warehouse: mine", "from/environment", None, "sub/mine", "`warehouse` in sub/night.yaml"),
        ("warehouse: mine", "from/environment", "asked", "asked", "--warehouse"),
        ("warehouse: ~/evals", "", None, "home/evals", "`warehouse` in sub/night.yaml"),
    ],
)
def test_an_option_goes_before_the_configuration_and_that_before_the_environment(
    folder: Path,
    monkeypatch: Patch,
    setting: str,
    environment: str,
    option: str | None,
    chosen: str,
    why: str,
) -> None:
    monkeypatch.setenv("PRBENCH_WAREHOUSE", environment)
    job = load_job(
        Arguments(config=configured(setting), warehouse=Path(option) if option else None)
    )
    assert folder / chosen == job.warehouse
    assert why == job.warehouse_source


def test_rows_of_the_embedded_default_are_not_beside_ones_own(folder: Path) -> None:
    job = load_job(Arguments())

    assert job.warehouse == folder / "warehouse/embedded"
    assert job.warehouse_source == "default without a configuration"

    configured(file=Path("prbench.yaml"))

    assert load_job(Arguments()).warehouse == folder / "warehouse/data"


def test_data_that_is_stored_here_is_shown_without_a_configuration_too(folder: Path) -> None:
    (folder / "warehouse/data").mkdir(parents=True)

    job = load_job(Arguments())

    assert job.warehouse == folder / "warehouse/data"
    assert job.warehouse_source == "default"


@pytest.mark.parametrize(
    ("environment", "option", "chosen"),
    [
        ("from/environment", None, "from/environment"),
        ("", "warehouse/data", "warehouse/data"),
        ("from/environment", "given", "given"),
    ],
)
def test_a_choice_of_a_folder_holds_for_the_embedded_default(
    folder: Path, monkeypatch: Patch, environment: str, option: str | None, chosen: str
) -> None:
    monkeypatch.setenv("PRBENCH_WAREHOUSE", environment)

    assert (
        load_job(Arguments(warehouse=Path(option) if option else None)).warehouse == folder / chosen
    )


def test_a_report_is_beside_the_configuration(folder: Path) -> None:
    assert (
        folder / "sub/pages"
        == load_job(Arguments(config=configured("report: {folder: pages}"))).report_folder
    )
    configured(f"warehouse: {folder / 'elsewhere'}", Path("prbench.yaml"))
    assert folder / "elsewhere" == load_job(Arguments()).warehouse


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("settings", "arguments", "setting"),
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
def test_the_home_of_nobody_is_refused_in_one_line(
    settings: str, arguments: dict[str, Path], setting: str
) -> None:
    line = refusal(Arguments(**{"config": configured(settings), **arguments}))  # type: ignore[arg-type]
    assert f"{setting}: ~nobody-at-all/x: there is no such user; write the whole path" == line


def test_doctor_and_status_name_the_data_folder_and_why(
    folder: Path, monkeypatch: Patch, run: Run
) -> None:
    monkeypatch.setenv("PRBENCH_WAREHOUSE", "elsewhere")
    job = load_job(Arguments())
    ingest(job)
    Warehouse(job.warehouse).publish()
    (finding,) = [finding.detail for finding in examine(job) if finding.subject == "data folder"]
    assert f"{folder / 'elsewhere'} (PRBENCH_WAREHOUSE)" == finding
    assert f"Warehouse: {folder / 'elsewhere'} (PRBENCH_WAREHOUSE)\n" in run("status")


def test_a_configuration_is_to_try_next_where_there_is_none(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UV_RUN_RECURSION_DEPTH", "1")
    assert next_commands(Arguments()).startswith("uv run prbench leaderboard")
    assert "cp prbench.example.yaml prbench.yaml" in next_commands(Arguments())
    (tmp_path / "prbench.yaml").touch()
    assert "cp prbench.example.yaml" not in next_commands(Arguments())
    assert "cp prbench.example.yaml" not in next_commands(Arguments(config=Path("another.yaml")))


def test_commands_to_try_next_are_about_the_same_data(tmp_path: Path) -> None:
    leaderboard, query = next_commands(
        Arguments(Path("my night.yaml"), "kitchen", warehouse=tmp_path)
    ).splitlines()
    assert leaderboard.endswith(
        f" --by category --config 'my night.yaml' --warehouse {tmp_path} --benchmark kitchen"
    )
    assert f"prbench sql --config 'my night.yaml' --warehouse {tmp_path} " in query


def test_doctor_names_a_path_that_is_not_there_and_missing_keys(file: Path) -> None:
    file.write_text("dataset: {source: nowhere.jsonl}\nmodels: []\njudges: [{name: openai/y}]\n")
    findings = examine(load_job(Arguments(config=file, warehouse=file.parent / "data")))
    is_ok, detail = (
        {each.subject: getattr(each, name) for each in findings} for name in ("is_ok", "detail")
    )

    assert not is_ok["data set"]
    assert not is_ok["judge openai/y"]
    assert detail["data set"].startswith("nowhere.jsonl is not a file")
    assert detail["judge openai/y"] == "OPENAI_API_KEY is not set; export it"
    assert detail["configuration"] == "prbench, 0 models, 1 judge, trials 1"


def test_an_imported_model_calls_nobody_and_survives_being_stored(file: Path) -> None:
    file.write_text(
        "dataset: {source: sample}\nmodels: [{label: x, source: imported}]", encoding="utf-8"
    )
    job = load_job(Arguments(config=file))
    assert list(callees(job)) == []
    assert job.settings == Settings.model_validate(job.settings.model_dump(mode="json"))


def test_models_that_are_named_narrow_what_is_evaluated_and_not_what_is_compared(
    file: Path,
) -> None:
    file.write_text(
        "dataset: {source: sample}\n" + TWO + "stopping: {pairs: [[a, b]]}", encoding="utf-8"
    )
    job = load_job(Arguments(config=file, named_models=("b",)))
    assert [model.label for model in job.settings.models] == ["b"]
    assert [model.label for model in job.compared_models] == ["a", "b"]


def test_a_rule_that_cascade_picks_can_be_pasted_into_the_configuration() -> None:
    shown = "\n".join(kept()["world/shown/cascade mild-judge strict-judge --bound agreement=0.8"])
    judges = [
        {"name": f"openai/{label}", "label": label} for label in ("mild-judge", "strict-judge")
    ]
    picked = yaml.safe_load(shown.partition("beside both judges:\n")[2])
    given = {"dataset": {"source": "sample"}, "judges": [*judges, *picked]}
    settings, problems = sound_settings(given)
    assert problems == []
    assert settings is not None
    assert len(settings.judges) == 1


def test_the_problems_of_a_configuration_are_reported_together(file: Path) -> None:
    twice = (
        "models: [{name: a, label: x}, {name: b, label: x}]\njudges: [{name: a, rubric: augmented},"
        " {name: a}]\n"
    )
    file.write_text(f"dataset: {{source: sample}}\n{twice}trials: 0\nlimits: {{tials: 1}}\n")
    for part in (
        "trials: Input should be greater",
        "limits.tials: there is no such key (did you mean `trials`?)",
    ):
        assert part in refusal(Arguments(config=file))
    file.write_text("judges: [{name: a, source: b}]\n")
    assert "judges[0].source: there is no such key; dataset" in refusal(Arguments(config=file))
    file.write_text(f"dataset: {{source: sample}}\n{twice}")
    for part in (
        "models: label 'x' is used",
        "judges: label 'a' is used",
        "judge a has `rubric: augmented`",
    ):
        assert part in refusal(Arguments(config=file))


def test_a_folder_that_is_neither_empty_nor_a_warehouse_is_refused_and_stays_as_it_is(
    tmp_path: Path,
) -> None:
    taken = tmp_path / "taken"
    disk = tmp_path / "disk"
    (taken / "apt").mkdir(parents=True)
    assert f"warehouse {taken} (--warehouse): contains apt and is no warehouse" in refusal(
        Arguments(warehouse=taken)
    )
    assert [taken / "apt"] == list(taken.iterdir())

    (disk / "lost+found").mkdir(parents=True)
    (disk / ".snapshots").mkdir()
    assert disk == load_job(Arguments(warehouse=disk)).warehouse
    Warehouse(disk).write("runs", [row("runs", command="run")])
    (disk / "notes.txt").touch()
    assert disk == load_job(Arguments(warehouse=disk)).warehouse
