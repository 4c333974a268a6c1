"""How a benchmark's scores are named: by a name that reads in a sentence, and by their formula."""

from tasks.benchmarks.base import Benchmark
from tasks.rules.records import ScoreDefinition


def score_word(score_name: str) -> str:
    """A score's name as it stands in a sentence or at an axis."""
    name = score_name.replace("_", " ")
    return name if name.endswith("score") else f"{name} score"


def formula(score: ScoreDefinition) -> str:
    """A score of one answer as a fraction of `points` and of the sums of `positive` and `negative` weights."""
    above = _sum((1.0, "points"), (score.numerator_negative, "negative"))
    below = _sum((score.denominator_positive, "positive"), (score.denominator_negative, "negative"))
    return f"{above} / {below}"


def _sum(*terms: tuple[float, str]) -> str:
    """Terms that are not 0, each with its sign, in parentheses where they are several."""
    shown = [(factor, name) for factor, name in terms if factor]
    parts = [
        f"{'−' if factor < 0 else '+'} {'' if abs(factor) == 1 else f'{abs(factor):g} × '}{name}"
        for factor, name in shown
    ]
    text = " ".join(parts).removeprefix("+ ")
    return f"({text})" if len(shown) > 1 else text


def words(benchmark: Benchmark) -> dict[str, str]:
    """What the sentences below figures say of a benchmark, by the name that stands for it there."""
    primary, of_criteria = benchmark.primary_score, benchmark.criteria_score
    return {
        "score": score_word(primary.score_name),
        "formula": formula(primary),
        "criteria_score": score_word(of_criteria.score_name),
        "criteria_formula": formula(of_criteria),
        "explained": _explained(benchmark),
    }


def _explained(benchmark: Benchmark) -> str:
    """What the words of the primary score's formula mean."""
    half = " (half the weight of those partly met)" if "ternary" in benchmark.gradings else ""
    sums = "positive is the sum of all weights above 0"
    if "negative" in formula(benchmark.primary_score):
        sums += " and negative the sum of all weights below 0"
    clipped = " A mean below 0 counts as 0." if benchmark.primary_score.clips_mean else ""
    return f"points is the sum of the weights of the criteria that are met{half}; {sums}.{clipped}"
