"""Everything that is shown, declared once: figures, their scope, and how they are written."""
