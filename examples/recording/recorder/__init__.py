"""What the scripts beside this folder share. Modules that need PyTorch say so; the others run without.

setup, matrix, manifest, spread    what is recorded, what it is compared with, what is written down
gpt, resnet, tasks, strategy, training, serving
                                   the programs that run (PyTorch)
machine, recording                 where they run, and running them under the profiler (PyTorch)
samples, calibration               what recorded and simulated traces say, side by side (hta_widgets)
"""
