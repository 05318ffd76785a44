from hta_widgets.hta.methods import annotations as annotations
from hta_widgets.hta.methods import breakdowns as breakdowns
from hta_widgets.hta.methods import counter_events as counter_events
from hta_widgets.hta.methods import counters as counters
from hta_widgets.hta.methods import idle as idle
from hta_widgets.hta.methods import kernels as kernels
from hta_widgets.hta.methods import launches as launches
from hta_widgets.hta.methods import sequences as sequences
