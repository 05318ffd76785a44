"""What a scan of packets fills: its arrays, and what lies where in each."""

from __future__ import annotations

from typing import Any, Final

Number = Any
"""A number of 64 bits: kernels turn a plain int into one."""

# status of a scan
ALL: Final = 0  # every packet that ends before the stop was read
NO_ROOM: Final = 1  # flush the rows, make room for a packet of totals[WANTED] bytes, go on
BROKEN: Final = 2  # no packet begins at the cursor
COMPRESSED: Final = 3  # the packet before the cursor holds packets, packed at totals[PACKED_AT : PACKED_END]

# kinds of rows
BEGIN, END, INSTANT, COUNTER, STAGE, STAGE_COUNTER, COMPLETE = range(1, 8)
# columns of `events`; LANE: the name of a stage's queue, or whether a counter's value is a float
KIND, TIME, DURATION, TRACK, NAME, CATEGORY, LANE, METADATA, EVENT_COLUMNS = range(9)
NONE: Final = -1

# columns of `places`, of which each is a sequence or a track, as FLAGS says
GENERATION, DEFAULT_TRACK, DEFAULT_CLOCK, OWN_CLOCK, OWN_UNIT, OWN_OFFSET, OWN_LAST = 0, 2, 3, 4, 5, 6, 7
PARENT, FLAGS, PID, TID, TRACK_NAME, PROCESS_NAME, THREAD_NAME, LABELS, PROCESS_SORT, THREAD_SORT = range(10)
PLACE_COLUMNS: Final = 10  # the names are codes
DESCRIBED, IS_PROCESS, IS_THREAD, IS_COUNTER, IS_SEQUENCE = 1, 2, 4, 8, 16

# what ids are of
A_SEQUENCE, A_TRACK, AN_EVENT, A_CATEGORY, A_KEY, A_STRING, A_STAGE, A_KERNEL, AN_ARGUMENT = range(9)
A_COUNTER, A_COUNTER_DEVICE = 9, 10

# `numbers`: single ones, then SEEN, CLOCK_OFFSET ..., and for each sparse column its cells and its kind
(ROWS, NOTES, WANTED, MALFORMED, MALFORMED_AT, GENERATIONS, PLACES, UNRESOLVED, UNKNOWN_CLOCK, ANCHOR,
 REALTIME, HAS_ANCHOR, LAST_SEQUENCE, LAST_SLOT, PACKED_AT, PACKED_END, PACKETS, COLUMNS, GRID, BLOCK, SHARED,
 DEVICE, LAST_UUID, LAST_TRACK, LAST_KEY) = range(25)  # fmt: skip
SEEN: Final = 32  # [field of a packet] -> packets
MOST_FIELDS: Final = 256  # of packets, whose payloads are counted
CLOCKS: Final = 64
CLOCK_OFFSET: Final = SEEN + MOST_FIELDS  # [clock] -> what to add to get BOOTTIME
CLOCK_KNOWN: Final = CLOCK_OFFSET + CLOCKS
COUNTS: Final = CLOCK_KNOWN + CLOCKS

# columns of `marks`, of each text; FOLLOWING: the key that came after this one the last time
MEANING, ACTION, FOLLOWING, MARKS = range(4)
# columns of `notes`: a flow has the row, its id and whether it ends there; a deferred value the row, its
# column and the code of a message, or -2 - that of a text
NOTE, NOTE_ROW, NOTE_ID, NOTE_VALUE = range(4)
A_FLOW, A_DEFERRED = 0, 1

SKIP, IS_METADATA = -1, -3
BOOTTIME, REALTIME_CLOCK, FIRST_OWN_CLOCK = 6, 1, 64
METADATA_CODES: Final = 2  # the first names are those of instants about the whole trace

# the most bytes of texts that a packet adds: texts, messages twice, and ids
TEXT_PER_BYTE: Final = 16
TEXT_ROOM: Final = 4096

# what an argument holds
NOTHING, A_NUMBER, A_DOUBLE, A_TEXT, A_TEXT_ID, A_MESSAGE = range(6)
