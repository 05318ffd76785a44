"""When devices work, and on what kind of work.

busy            the sets of time that all breakdowns are made of
temporal        compute, exposed communication and copies, idle
overlap         how much communication compute hides
kernel_types    which kinds of work run at once
steps           how long each step takes
"""
