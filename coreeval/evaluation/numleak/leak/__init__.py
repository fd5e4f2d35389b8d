"""How far a memory of values reaches into a signal: NumLeak, section 6 and appendices L to N.

Three numbers for each date, the signal, what the model recalls and what was published, and what
follows from how they vary together. A high LeakShare alone says little: where recall is right, what
follows the truth follows the recall as well. What tells them apart is the model's mistakes.
"""

from coreeval.evaluation.numleak.leak.leaks import measure_leak
from coreeval.evaluation.numleak.leak.mediation import Attribution, Leak
from coreeval.evaluation.numleak.leak.signals import Signal

__all__ = ["Attribution", "Leak", "Signal", "measure_leak"]
