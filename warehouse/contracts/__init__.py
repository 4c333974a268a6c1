"""Every stored column and table, declared once."""
