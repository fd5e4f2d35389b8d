"""How far a memory of values affects a signal: NumLeak, section 6 and appendices L to N.

Each date has three numbers: the signal, the recalled value and the published value; the results
follow from their covariances. A high LeakShare alone says little: if recall is right, a signal that
follows the truth also follows recall. The model's mistakes distinguish the two.
"""

from coreeval.evaluation.numleak.leak.leaks import measure_leak
from coreeval.evaluation.numleak.leak.mediation import Attribution, Leak
from coreeval.evaluation.numleak.leak.signals import Signal

__all__ = ["Attribution", "Leak", "Signal", "measure_leak"]
