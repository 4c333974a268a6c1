"""The configuration file: where it is, what it says, and which benchmark it says it of."""

from pathlib import Path
from typing import Any

import yaml

from flows.run.validation import ConfigurationError, sound_settings
from flows.run.yaml_problems import yaml_problem
from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.config.settings import Settings
from tasks.rules.errors import UsageError, from_home
from tasks.rules.text.characters import did_you_mean
from tasks.rules.text.json_text import refuse_deep

_OWN = "benchmarks"
"""The key of settings that benchmarks have of their own."""
_MOST_SETTINGS = 100_000
_DEFAULT = Path("prbench.yaml")
_BUILT_IN = Path(__file__).with_name("built_in.yaml")


def config_file(named: Path | None) -> Path | None:
    """The configuration file: the one that is named, else `prbench.yaml` in the current folder if there is one."""
    if named is not None:
        return from_home(named, "--config")
    return _DEFAULT if _DEFAULT.exists() else None


def read_document(path: Path | None) -> tuple[dict[str, Any], str]:
    """What a configuration file says, or the built-in default without one, and what to call it in messages.

    Raises:
        UsageError: it is missing, or no YAML that can be settings.
    """
    try:
        document = yaml.load((path or _BUILT_IN).read_text(encoding="utf-8"), Loader=_UniqueKeys)
        # References may make a short text large, or lead in a circle.
        refuse_deep(document, _MOST_SETTINGS)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file; copy prbench.example.yaml, or leave --config out") from error
    except RecursionError as error:
        raise UsageError(
            f"{path}: is nested too deeply, or too large, to be settings; see prbench.example.yaml"
        ) from error
    except yaml.YAMLError as error:
        raise UsageError(f"{path}: not valid YAML: {yaml_problem(error)}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read as text ({getattr(error, 'strerror', None) or error})") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: holds no settings; see prbench.example.yaml")
    return document, str(path or "the embedded default")


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that appears twice is an error, and not the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                mark = node.value[place][0].start_mark
                raise yaml.MarkedYAMLError(problem=f"key {key!r} appears twice", problem_mark=mark)
        return super().construct_mapping(node, deep)


def of_benchmark(document: dict[str, Any], where: str, wanted: str | None) -> dict[str, Any]:
    """The document with what a benchmark has of its own in the place of what all have, and without the others' own.

    `wanted` is the benchmark; None: the one that the document names.

    Raises:
        UsageError: there is no such benchmark, or the document has no data set of it.
    """
    if wanted is not None:
        load_benchmark(wanted)  # a name that is mistyped is the mistake, and not what is missing of it
    common = without_own(document)
    own = _own_settings(document, common, where)
    configured = str(common.get("benchmark", Settings.model_fields["benchmark"].default))
    dataset = common.get("dataset")
    # Every benchmark has a sample, but a data set is one benchmark's.
    is_shared = not isinstance(dataset, dict) or dataset.get("source") == "sample"
    if wanted not in {None, configured} and not is_shared and "dataset" not in own.get(str(wanted), {}):
        raise UsageError(
            f"--benchmark {wanted}: the data set of {where} is that of {configured}; name one of {wanted} there under "
            f"{_OWN}.{wanted}.dataset, or in a configuration of its own"
        )
    chosen = wanted or configured
    named = {} if wanted is None and chosen not in own else {"benchmark": chosen}
    return {**common, **own.get(chosen, {}), **named}


def without_own(document: dict[str, Any]) -> dict[str, Any]:
    """The document without what benchmarks have of their own."""
    return {key: value for key, value in document.items() if key != _OWN}


def _own_settings(document: dict[str, Any], common: dict[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """What benchmarks have of their own; looked at for all of them, so that a mistake is not found at night."""
    own = document.get(_OWN) or {}
    if not isinstance(own, dict) or not all(isinstance(settings, dict) for settings in own.values()):
        raise UsageError(f"{where}: {_OWN}: must map each benchmark to its settings; see prbench.example.yaml")
    known = benchmark_names() if own else []
    problems: list[str] = []
    for name, settings in own.items():
        if name not in known:
            near = did_you_mean(str(name), known) or f"; known: {', '.join(known)}"
            problems.append(f"{_OWN}.{name}: there is no such benchmark{near}")
        elif "benchmark" in settings:
            problems.append(f"{_OWN}.{name}.benchmark: there is no such key")
        else:
            # A mistake in what all have is reported with the chosen benchmark.
            problems += [f"{_OWN}.{name}: {problem}" for problem in _problems_of({**common, **settings}, common)]
    if problems:
        raise ConfigurationError(where, [*_problems_of(common, {}), *problems])
    return own


def _problems_of(document: dict[str, Any], common: dict[str, Any]) -> list[str]:
    """The problems of settings, without those that what all benchmarks have has already."""
    _, problems = sound_settings(document)
    known = _problems_of(common, {}) if problems and common else []
    return [problem for problem in problems if problem not in known]
