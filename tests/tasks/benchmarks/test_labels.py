"""Comma-joined labels, some of which hold commas themselves."""

from hypothesis import given
from hypothesis import strategies as st

from tasks.benchmarks.prbench import VOCABULARIES
from tasks.benchmarks.rows import split_labels

JOINERS = (", ", ",")


LISTS = st.sampled_from([vocabulary for kinds in VOCABULARIES.values() for vocabulary in kinds.values()]).flatmap(
    lambda vocabulary: st.tuples(st.just(vocabulary), st.lists(st.sampled_from(sorted(vocabulary)), unique=True))
)


@given(LISTS, st.sampled_from(JOINERS))
def test_joining_and_splitting_labels_gives_them_back(case: tuple[frozenset[str], list[str]], joiner: str) -> None:
    vocabulary, labels = case

    assert tuple(labels) == split_labels(joiner.join(labels), vocabulary)


def test_an_unknown_label_between_known_ones_is_kept() -> None:
    vocabulary = VOCABULARIES["Finance"]["decision_type"]

    assert ("Other", "Planning & Forecast", "Operations, Processes & Controls") == split_labels(
        "Other, Planning & Forecast, Operations, Processes & Controls", vocabulary
    )
    assert ("Compliance Programmes", "Compliance") == split_labels("Compliance Programmes,Compliance", {"Compliance"})


@given(st.text(alphabet=", aB&", max_size=30), st.sets(st.sampled_from(["a", "B", "a, B", "a & B", "aB"])))
def test_no_letter_of_a_list_is_lost(text: str, vocabulary: set[str]) -> None:
    labels = split_labels(text, vocabulary)

    assert {part.strip() for part in text.split(",")} - {""} == {
        part.strip() for label in labels for part in label.split(",")
    }
