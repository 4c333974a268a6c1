"""The glossary of `tasks/README.md`: none of our names and sentences has a word that the glossary
replaces.
"""

import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from tests.kit import ROOT, tracked_files

OURS = {".py", ".sql", ".md", ".yml", ".yaml", ".jinja", ".html", ".js", ".toml"}
WRITTEN_ELSEWHERE = {
    "CHANGELOG.md",  # it maps old names to new ones
    "tasks/benchmarks/prbench.py",
    "tasks/benchmarks/researchrubrics.py",  # prompts, which are part of identities
    "tests/faults/behaviours.py",
    "tests/kit.py",
    "tests/tasks/rules/test_quoting.py",  # texts that models write
    "tests/tasks/exports/test_inspect_logs.py",
    "tests/tasks/imports/results/workload.py",
    "tests/tasks/imports/results/harness_files.py",  # logs of other tools
    "tests/tasks/report/synthetic/results.py",  # seeds of random texts
}
"""Files with sentences that are not ours, or must have old names."""
PROMISED = {
    "answers",  # the key of a decision model's reply
    "FileNotFoundError",  # Python's
    "ObjectNotFound",  # Prefect's
    "get_by_role",  # Playwright's
    "judging_id",
    "responses_made",
    "verdicts_made",
    "found_gap",
    "n_tasks_found",
    "p_found",  # columns in many users' queries
    "role",  # the key of a message, as for all providers
}
"""Names that the interface or a library promises."""


def test_no_name_and_no_sentence_uses_a_word_that_the_glossary_replaces():
    in_names, in_prose = replaced()
    uses = []
    for file in (file for file in tracked_files() if file.suffix in OURS):
        text = (ROOT / file).read_text()
        uses_in_file = [
            *names(file, text, in_names),
            *sentences(file, text, in_prose),
        ]
        for line, word in uses_in_file:
            uses.append(f"{file}:{line}: {word}")

    assert uses == []


def replaced() -> tuple[set[str], set[str]]:
    """Return the words of the last column: all of them, which are refused in names; and those
    refused in prose too.
    """
    readme = (ROOT / "tasks/README.md").read_text()
    lines = readme.partition("## Glossary")[2].splitlines()
    _heading, _rule, *rows = [line for line in lines if line.count("|") == 4]
    text = " ".join(row.split("|")[3] for row in rows)
    prose = set(re.findall("[a-z_]+", re.sub("`.*?`", "", text)))
    return prose.union(re.findall("`([a-z_]+)`", text)), prose


def all_names(file: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each name; the file's own names have line 0."""
    for part in file.with_suffix("").parts:
        yield 0, part
    if file.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.NAME:
                yield token.start[0], token.string
    elif file.suffix == ".sql":
        for number, line in enumerate(text.splitlines(), 1):
            code = re.sub("'[^']*'", "", line.partition("--")[0])
            for name in re.findall(r"[a-z_]\w*", code):
                yield number, name


def names(file: Path, text: str, words: set[str]) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each name that contains one of the words; the file's own name
    has line 0.
    """
    has_word = re.compile("|".join(words).replace("_", "")).search
    for number, name in all_names(file, text):
        if name.startswith("test_") or not has_word(name.lower().replace("_", "")):
            continue  # the name of a test is a sentence
        parts = re.sub("(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
        if name not in PROMISED and any(
            f"_{word}_" in f"_{parts}_" for word in words
        ):
            yield number, name


def sentences(file: Path, text: str, words: set[str]) -> Iterator[tuple[int, str]]:
    """Yield each of the words in a file's text, with its line."""
    if str(file) in WRITTEN_ELSEWHERE:
        return
    is_glossary = str(file) == "tasks/README.md"
    promised = re.compile(f'["`](?:{"|".join(PROMISED)})["`]')
    has_word = re.compile("|".join(words)).search
    for number, line in enumerate(text.splitlines(), 1):
        is_entry = is_glossary and line.count("|") == 4
        if is_entry or not has_word(line.lower()):
            continue
        for word in re.findall("[a-z]+", promised.sub("", line).lower()):
            if word in words:
                yield number, word
