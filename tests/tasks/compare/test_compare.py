"""Comparisons: figures and flips that follow from hand-made verdicts."""

from collections.abc import Iterator
from fractions import Fraction

import pytest

from tasks.compare import with_explanations
from tests.builders import criterion
from tests.tasks.compare.comparisons import (
    ALL_MET,
    MIXED,
    RUBRICS,
    WORSE_IN_RISK,
    Decisions,
    apart,
    ask,
    changes,
    filled,
    judged,
    mean,
    own_hard,
    score,
    tasks_of,
    together,
)
from tests.tasks.conftest import Fill
from warehouse import Reader


@pytest.fixture(scope="module")
def three_models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """Models a, b and c, all complete; an own hard selection of t1 and t4; t2 stands in a second split too."""
    legal = [member | {"split": "legal"} for member in tasks_of({"t2": RUBRICS["t2"]})["split_members"]]
    with filled(
        tmp_path_factory.mktemp("three"),
        tasks_of(RUBRICS),
        {"split_members": legal},
        judged(ALL_MET, "a"),
        judged(WORSE_IN_RISK, "b"),
        judged(MIXED, "c"),
        own_hard(["t1", "t4"]),
    ) as reader:
        yield reader


def test_two_models_differ_by_what_the_verdicts_say(three_models: Reader) -> None:
    answer = ask(three_models, "a", "c")
    [found] = answer.differences
    expected = changes(ALL_MET, MIXED)
    assert (answer.kind, found.split, found.paired.n_tasks, found.n_wanted) == ("model", "finance", 4, 4)
    assert found.first_mean == pytest.approx(1.0)
    assert found.second_mean == pytest.approx(float(mean([score(RUBRICS[t], MIXED[t]) for t in RUBRICS])))
    assert found.difference == pytest.approx(float(mean(expected)))
    # Four tasks are too few for an interval or a test.
    assert (found.paired.ci_low, found.paired.p_value, found.is_significant) == (None, None, None)
    assert [task.task_id for task in found.tasks] == list(RUBRICS)


def test_the_other_way_round_everything_has_the_other_sign(three_models: Reader) -> None:
    there, back = ask(three_models, "b", "c"), ask(three_models, "c", "b")
    [one], [other] = there.differences, back.differences
    assert one.difference == pytest.approx(-other.difference)
    assert (one.first_mean, one.second_mean) == (other.second_mean, other.first_mean)
    assert one.paired.p_value == other.paired.p_value
    [flips], [flips_back] = apart(three_models, there), apart(three_models, back)
    assert {f.criterion_id: f.effect for f in flips.flips} == {f.criterion_id: -f.effect for f in flips_back.flips}


def test_a_planted_regression_stands_in_its_category(three_models: Reader) -> None:
    answer = ask(three_models, "a", "b")
    [flips] = apart(three_models, answer)
    lost = [Fraction(-6, 20), Fraction(-2, 10), Fraction(-7, 15), Fraction(-10, 9)]
    assert [(c.category, c.n_gained, c.n_lost) for c in flips.categories] == [
        ("Risk", 0, 4), ("Accuracy", 0, 0), ("Clarity", 0, 0),
    ]  # fmt: skip
    assert flips.categories[0].contribution == pytest.approx(float(mean(lost)))
    assert flips.explained == pytest.approx(answer.differences[0].difference)
    assert [f.criterion_id for f in flips.flips] == ["t4-c1", "t3-c1", "t1-c1", "t2-c1"]
    assert [f.effect for f in flips.flips] == pytest.approx(sorted(map(float, lost)))
    assert [(t.task_id, t.n_gained, t.n_lost) for t in flips.tasks] == [(t, 0, 1) for t in ("t4", "t3", "t1", "t2")]
    assert [t.difference for t in flips.tasks] == pytest.approx(sorted(map(float, lost)))
    assert (flips.n_criteria, flips.n_compared, flips.n_undecided, flips.n_in_one) == (11, 11, 0, 0)


def test_flips_add_up_to_the_difference_in_another_score_too(three_models: Reader) -> None:
    answer = ask(three_models, "a", "c", score="min_normalized")
    [flips] = apart(three_models, answer)
    # (points - N) / (P - N), worked out by hand: t1 (10 - 5 + 5) / 25, t2 all, t3 5 / 15, t4 (0 + 10) / 19.
    of_c = [Fraction(10, 25), Fraction(1), Fraction(5, 15), Fraction(10, 19)]
    assert answer.differences[0].difference == pytest.approx(float(mean(of_c) - 1))
    assert flips.explained == pytest.approx(answer.differences[0].difference)


def test_the_judges_reasons_stand_beside_a_flip(three_models: Reader) -> None:
    answer = ask(three_models, "a", "b")
    [flips] = apart(three_models, answer)
    [first] = with_explanations(three_models, answer.differences[0].pair, flips.flips[:1])
    assert first.explanations == (("why in a: 0.0",), ("why in b: 1",))


def test_several_are_each_compared_with_the_first_and_corrected_for_by_holm(published: Fill) -> None:
    rubrics = {f"t{number}": [(10, "Risk"), (number + 1, "Accuracy")] for number in range(12)}
    every = {task: [1, 1] for task in rubrics}
    worse = {task: [0, 1] for task in rubrics}
    mixed = {task: [number % 2, (number + 1) % 2] for number, task in enumerate(rubrics)}
    rows = (judged(decided, name, rubrics=rubrics) for name, decided in (("a", worse), ("b", mixed), ("c", every)))
    found = ask(published(together(tasks_of(rubrics), *rows)), "a", "b", "c").differences
    assert [(d.pair.first.name, d.pair.second.name) for d in found] == [("a", "b"), ("a", "c")]
    p_values = [d.paired.p_value for d in found]
    smaller, larger = sorted(p_values)
    adjusted = {smaller: min(1, 2 * smaller), larger: max(2 * smaller, larger)}
    assert [d.p_adjusted for d in found] == [adjusted[p] for p in p_values]
    for d in found:
        assert (d.paired.p_value <= 0.05) == (d.paired.ci_low > 0 or d.paired.ci_high < 0)


def test_every_split_is_a_comparison_and_so_is_the_own_hard_selection(three_models: Reader) -> None:
    every = ask(three_models, "a", "b", splits=()).differences
    assert [(d.split, d.paired.n_tasks) for d in every] == [("finance", 4), ("legal", 1)]
    assert (every[1].paired.p_value, every[1].is_significant) == (None, None)
    [hard] = ask(three_models, "a", "b", is_hard=True).differences
    assert (hard.split, [t.task_id for t in hard.tasks]) == ("Finance (own hard)", ["t1", "t4"])


def test_an_undecided_criterion_is_never_a_flip_and_its_task_counts_for_neither(published: Fill) -> None:
    second = {**WORSE_IN_RISK, "t3": [0, None, 1]}
    reader = published(together(tasks_of(RUBRICS), judged(ALL_MET, "a"), judged(second, "b")))
    answer = ask(reader, "a", "b")
    [found], [flips] = answer.differences, apart(reader, answer)
    complete = ("t1", "t2", "t4")
    of_complete = changes({t: ALL_MET[t] for t in complete}, {t: WORSE_IN_RISK[t] for t in complete})
    assert (found.paired.n_tasks, found.n_wanted) == (3, 4)
    assert found.difference == pytest.approx(float(mean(of_complete)))
    # t3 has an undecided criterion, a decided one that differs and another that does not.
    assert (flips.n_criteria, flips.n_compared, flips.n_undecided, flips.n_left_out) == (11, 8, 1, 2)
    assert {flip.task_id for flip in flips.flips} == {"t1", "t2", "t4"}
    assert flips.explained == pytest.approx(found.difference)


def test_a_verdict_on_a_criterion_that_has_changed_since_decides_nothing(published: Fill) -> None:
    of_b = judged(WORSE_IN_RISK, "b")
    of_b["verdicts"][1]["criterion_hash"] = "of another wording"
    reader = published(together(tasks_of(RUBRICS), judged(ALL_MET, "a"), of_b))
    [flips] = apart(reader, ask(reader, "a", "b"))
    assert "t1" not in {flip.task_id for flip in flips.flips}
    assert (flips.n_undecided, flips.n_left_out) == (1, 3)


def test_a_flip_is_of_the_mean_over_the_complete_trials(published: Fill) -> None:
    again: Decisions = {"t1": [1, 1, 0, 0], "t2": [0, None]}
    first: Decisions = {task: ALL_MET[task] for task in again}
    reader = published(
        together(tasks_of({t: RUBRICS[t] for t in again}), judged(first, "a"), judged(first, "b"),
                 judged(again, "b", trial=2))
    )  # fmt: skip
    answer = ask(reader, "a", "b")
    [flips] = apart(reader, answer)
    [flip] = flips.flips
    assert (flip.criterion_id, flip.first_value, flip.second_value) == ("t1-c2", 1.0, 0.5)
    assert flip.effect == pytest.approx(-0.5 * 4 / 20)
    # The second task counts with the trial that is complete, in which nothing differs.
    assert answer.differences[0].difference == pytest.approx(-0.5 * 4 / 20 / 2)
    assert flips.explained == pytest.approx(answer.differences[0].difference)
    assert (flips.n_undecided, flips.n_left_out) == (0, 0)
    [told] = with_explanations(reader, answer.differences[0].pair, [flip])
    assert told.explanations == (("why in a: 1.0",), ("why in b: 1.0", "why in b: 0"))


def test_a_mean_below_nothing_is_told_where_the_leaderboard_clips_it(published: Fill) -> None:
    rubrics = {"t4": RUBRICS["t4"], "t1": RUBRICS["t1"]}
    reader = published(
        together(tasks_of(rubrics), judged({"t4": [0, 1], "t1": [0, 0, 0, 1]}, "a"),
                 judged({"t4": [0, 0], "t1": [0, 0, 0, 0]}, "b"))
    )  # fmt: skip
    [found] = ask(reader, "a", "b", clips_mean=True).differences
    assert found.first_mean == pytest.approx(float(mean([Fraction(-10, 9), Fraction(-5, 20)])))
    assert found.difference == pytest.approx(-found.first_mean)
    assert any("before clipping" in note for note in found.notes)
    [unclipped] = ask(reader, "a", "b", score="min_normalized").differences
    assert not any("clipping" in note for note in unclipped.notes)


def test_a_criterion_that_stands_twice_in_a_rubric_is_compared_twice_and_no_more(published: Fill) -> None:
    twice = [criterion("t1", 0, 4), criterion("t1", 0, 6) | {"criterion_id": "again", "position": 1}]
    rows = tasks_of({"t1": [(4, "Risk"), (6, "Risk")]})
    reader = published(
        together(rows | {"criteria": twice}, judged({"t1": [1, 1]}, "a", criteria={"t1": twice}),
                 judged({"t1": [1, 0]}, "b", criteria={"t1": twice}))
    )  # fmt: skip
    [flips] = apart(reader, ask(reader, "a", "b"))
    assert [(f.criterion_id, f.effect) for f in flips.flips] == [("again", pytest.approx(-0.6))]
    assert flips.n_compared == 2
