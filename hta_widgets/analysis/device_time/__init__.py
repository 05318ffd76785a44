"""When devices work, and on which kind of work.

busy            the intervals that all breakdowns are computed from
temporal        compute, exposed communication and copies, idle
gpu_utilization how busy a device is over time
overlap         how much communication compute hides
kernel_types    which kinds of work run at once
step_times      how long each step takes
step_parts      what each step consists of, beside the median step
step_strips     the same over the time of each step, as pixels
"""
