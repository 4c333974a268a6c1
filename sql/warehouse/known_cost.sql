-- What calls cost, as far as it is known. Those whose price nobody knows are
-- not in the sum; where they leave nothing, it is NULL and not 0.
create macro known_cost(usd, unpriced_calls) as
case when usd > 0 or unpriced_calls = 0 then usd end
