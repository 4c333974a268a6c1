"""The labels under which a log's models and judges are stored."""

from pathlib import Path

from tasks.imports.results.records import Log
from tasks.rules.errors import UsageError
from tasks.rules.identity import IMPORTED
from tasks.rules.text.characters import is_blank

_MODEL, _JUDGE = "{model}", "{judge}"


class Labels:
    """Labels of a log: those in it, or those that are given, in which `{model}` and `{judge}` stand for the log's."""

    def __init__(self, path: Path, log: Log, model: str | None, judge: str | None) -> None:
        """Refuse labels that cannot be.

        Raises:
            UsageError: a label is blank, the log names no model and none is given, or one is given for several.
        """
        self._model, self._judge = model, judge
        for given, option in ((model, "--as"), (judge, "--by")):
            if given is not None and is_blank(given):
                raise UsageError(f"{option} {given!r}: a label says something; write a name")
        models = {answer.model for answer in log.answers}
        judges = {each.judge for answer in log.answers for each in answer.gradings if each.decisions}
        if any(map(is_blank, models)) and (model is None or _MODEL in model):
            raise UsageError(f"{path}: names no model; give its label with --as LABEL")
        if any(map(is_blank, judges)) and judge is not None and _JUDGE in judge:
            raise UsageError(f"{path}: names no judge; give a label without {_JUDGE} with --by")
        for given, place, named, option in ((model, _MODEL, models, "--as"), (judge, _JUDGE, judges, "--by")):
            if given is not None and place not in given and len(named) > 1:
                listed = ", ".join(sorted(map(str, named)))
                raise UsageError(f"{option} {given}: {path} has {listed}; write {place} where its name belongs")

    def model(self, named: str | None) -> str:
        """The label of a model."""
        return named or "" if self._model is None else self._model.replace(_MODEL, named or "")

    def judge(self, named: str | None) -> str:
        """The label of a judge."""
        return (
            (IMPORTED if named is None or is_blank(named) else named)
            if self._judge is None
            else self._judge.replace(_JUDGE, named or "")
        )
