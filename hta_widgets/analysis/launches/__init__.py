"""From the host to the device.

launched        device work with the call that launched it
delays          how long work waits between launch and start
queue           how many launches wait, and when queues are full;  `stream_queues` follows each stream
op_kernels      operators, and the kernels they launch
"""
