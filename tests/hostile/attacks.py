# SPDX-License-Identifier: BSD-2-Clause
"""All attacks, in the order in which they are made."""
import attacks_door             # noqa: F401
import attacks_host             # noqa: F401
import attacks_identity         # noqa: F401
import attacks_keys             # noqa: F401
import attacks_memory           # noqa: F401
import attacks_none             # noqa: F401
import attacks_order            # noqa: F401
import attacks_rail             # noqa: F401
import attacks_window           # noqa: F401
import attacks_broadcast        # noqa: F401
import attacks_landing          # noqa: F401
import attacks_seals            # noqa: F401
import attacks_parcels          # noqa: F401
import attacks_work             # noqa: F401
