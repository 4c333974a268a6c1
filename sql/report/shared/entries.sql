-- One row: a sampling of a configured model that is shown, under its label.
select *
from $entries as given (model, model_config_hash, vintage, entry)
