-- One row: the interval and the test of a difference between conditions, with a
-- fingerprint of the values that they belong to.
--
-- built as: view
-- depends on: condition_tests
select * from condition_tests
