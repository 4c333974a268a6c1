"""Results for Python: open a warehouse or a publication, and read its tables, leaderboards and differences.

```python
from tasks.results import open_results

with open_results("warehouse/data") as results:
    print(results.leaderboard())
```
"""

from tasks.results.results import Format, Results, open_results

__all__ = ["Format", "Results", "open_results"]
