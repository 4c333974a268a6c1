-- The known cost of calls: the sum leaves out calls of unknown cost, and is NULL,
-- not 0, if no cost is known.
create macro known_cost(usd, unpriced_calls) as
case when usd > 0 or unpriced_calls = 0 then usd end;

-- Equations 1 and 3 of the paper: the score for these points, with the divisor
-- from `score_bounds`.
create macro score_of(points, offset_points, denominator) as
(points + offset_points) / denominator;

-- A p-value with the correction of its rank in its family (Holm); the corrected
-- p-value is the largest of these up to its rank.
create macro holm_step(p_value, n_tests, holm_rank) as
least(1, p_value * (n_tests - holm_rank + 1));

-- True if a name is among those that the user gives, or if there are none.
create macro is_among(names, name) as
len(names) = 0 or list_contains(names, name);

-- True if the error of a failed row contains one of some texts (those of
-- `tasks.run.missing_work.accepted_ends`).
create macro is_accepted(error, texts) as
len(list_filter(texts::varchar[], lambda part: contains(lower(error), part))) > 0;

-- The id of a figure: a hash of the texts that name it. NULLs are left out.
create macro figure_key(parts) as md5(array_to_string(parts, chr(31)));

-- A sum that does not depend on the order of the rows, so that the same data
-- gives the same last digit: it adds decimals with 18 places, which is exact.
-- Numbers that are too large for that are added as usual. (DuckDB 1.2 has no
-- `if` in a macro.)
create macro exact_sum(x) as
case
    when max(abs(x)) < 1e9
        then sum(case when abs(x) < 1e9 then x::decimal(38, 18) end)::varchar::double
    else fsum(x)
end;

-- The mean, likewise.
create macro exact_avg(x) as exact_sum(x) / count(x);

-- The correlation, likewise if the sums are exact, as they are for ranks and
-- whole numbers.
create macro exact_corr(x, y) as
(count(*) * sum(x * y) - sum(x) * sum(y))
/ sqrt((count(*) * sum(x * x) - pow(sum(x), 2)) * (count(*) * sum(y * y) - pow(sum(y), 2)));

-- The kinds of a criterion by its words: it has a number, a negation, or a list
-- of which a certain number is needed.
create macro kinds_of(title) as
list_filter(
    [
        case when regexp_matches(title, '[0-9]') then 'number' end,
        case
            when regexp_matches(title, '(?i)\b(not|no|never|none|without|avoids?|fails? to)\b|n[''’]t\b')
                then 'negation'
        end,
        case
            when
                regexp_matches(
                    title, '(?i)\bat least (\w+|[0-9]+)( or more)? (of|from|out of)\b|\bany (two|three|[0-9]+) of\b'
                )
                then 'list'
        end
    ],
    lambda kind: kind is not null
)
