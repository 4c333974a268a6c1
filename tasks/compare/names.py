"""What the names of a question are: labels as they stand, hashes and runs by a part of them."""

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

from tasks.compare.model_run import COLUMN_OF, KINDS, Kind, ModelRun, Question
from tasks.rules.errors import UsageError
from warehouse import Reader

_SHORTEST = 6
_BY_PREFIX: frozenset[Kind] = frozenset({"template", "run", "revision"})
_MOST_NAMED = 8

Known = Mapping[Kind, Sequence[str]]


def resolved(reader: Reader, question: Question, model_runs: Iterable[ModelRun]) -> tuple[Kind, tuple[str, ...]]:
    """What is compared, and the full names of it.

    Raises:
        UsageError: a name is not known, or stands for several things, or for the same as another.
    """
    known = _known(reader, question, model_runs)
    kinds = (question.kind,) if question.kind else KINDS
    found = {kind: [_full_names(kind, name, known[kind]) for name in question.names] for kind in kinds}
    fitting = [kind for kind in kinds if all(found[kind])]
    # What is named in full is meant before what only begins so.
    fitting = [kind for kind in fitting if set(question.names) <= set(known[kind])] or fitting
    if not fitting:
        raise UsageError(_unfit(question.names, found, known))
    if len(fitting) > 1:
        raise UsageError(f"{' and '.join(question.names)}: could be {_either(fitting)}; say which with --of")
    kind = fitting[0]
    for name, full in zip(question.names, found[kind], strict=True):
        if len(full) > 1:
            raise UsageError(f"{name}: {len(full)} {_PLURAL[kind]} match ({', '.join(full)}); give more of the name")
    names = tuple(full[0] for full in found[kind])
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise UsageError(f"{twice[0]}: given twice; compare different {_PLURAL[kind]}")
    return kind, names


_PLURAL: dict[Kind, str] = {
    "model": "models", "judge": "judges", "template": "templates", "run": "runs", "vintage": "vintages",
    "revision": "revisions",
}  # fmt: skip


def _known(reader: Reader, question: Question, model_runs: Iterable[ModelRun]) -> Known:
    known: dict[Kind, list[str]] = {kind: [] for kind in KINDS}
    every = list(model_runs)
    for kind, column in COLUMN_OF.items():
        known[kind] = sorted({getattr(each, column) for each in every})  # type: ignore[index]
    query = "select distinct run_id from verdicts where benchmark = ? order by run_id"
    rows = reader.rows(query, [question.benchmark])
    known["run"] = [row["run_id"] for row in rows]
    return known


def _full_names(kind: Kind, name: str, known: Sequence[str]) -> list[str]:
    if name in known:
        return [name]
    if kind in _BY_PREFIX and len(name) >= _SHORTEST:
        return [each for each in known if each.startswith(name)]
    return []


def _unfit(names: Sequence[str], found: Mapping[Kind, list[list[str]]], known: Known) -> str:
    """Why no kind fits: a name that nothing has, or names of different kinds."""
    for place, name in enumerate(names):
        if not any(full[place] for full in found.values()):
            return _unknown(name, {kind: known[kind] for kind in found})
    kinds_of = [next(kind for kind, full in found.items() if full[place]) for place in range(len(names))]
    message = ", ".join(f"{name} is a {kind}" for name, kind in zip(names, kinds_of, strict=True))
    return f"{message}; what is compared is of one kind"


def _unknown(name: str, known: Known) -> str:
    kind_of = {each: kind for kind, names in reversed(list(known.items())) for each in names}
    nearest = get_close_matches(name, kind_of, n=3, cutoff=0.5)
    message = f"{name}: there is no {_either(list(known))} of that name with verdicts"
    if nearest:
        return f"{message}; nearest: {', '.join(f'{each} ({kind_of[each]})' for each in nearest)}"
    kind = next((kind for kind, names in known.items() if names), None)
    if kind is None:
        return message
    shown = list(known[kind])[:_MOST_NAMED]
    more = f" and {len(known[kind]) - len(shown)} more" if len(known[kind]) > len(shown) else ""
    return f"{message}; {_PLURAL[kind]}: {', '.join(shown)}{more}"


def _either(kinds: Sequence[Kind]) -> str:
    return kinds[0] if len(kinds) == 1 else f"{', '.join(kinds[:-1])} or {kinds[-1]}"
