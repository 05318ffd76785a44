"""Kernels forked from one process, which has imported once what each of them would import for itself.

Each is a process of its own, as fresh as one that Jupyter starts, at 3 s of CPU time less. ``python
forked_kernels.py`` is the process they come from; with a connection file it is what Jupyter starts and waits
for: it asks for a kernel, ends with it, and the kernel ends with it.
"""

import contextlib
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import socket
import sys

ADDRESS = "HTA_WIDGETS_FORKED_KERNELS"  # in Jupyter's environment
NAME = "forked"
METADATA = {"name": NAME, "display_name": NAME, "language": "python"}  # of the kernel, in a notebook
IMPORTED = ("ipykernel.kernelapp", "ipykernel.debugger")
WHOLE = ("hta_widgets.analysis", "hta_widgets.widgets")  # with all that they import once it is asked for
CHECKED_SECONDS = 5  # until the process they come from sees that it was left alone


def spec() -> str:
    """The contents of kernel.json."""
    # neither site-packages nor the environment: it is there at once
    argv = [sys.executable, "-S", "-E", __file__, "{connection_file}"]
    known = {"display_name": "Python 3 (forked)", "language": "python", "interrupt_mode": "message"}
    return json.dumps({"argv": argv, **known})


def ask(address: str, connection_file: str) -> None:
    """Have a kernel with this process's environment, folder and output; ends with it."""
    with socket.socket(socket.AF_UNIX) as line:
        line.connect(address)
        wish = json.dumps([connection_file, os.getcwd(), dict(os.environ)]).encode()  # noqa: PTH109
        socket.send_fds(line, [len(wish).to_bytes(4, "big")], [1, 2])
        line.sendall(wish)
        line.recv(1)  # nothing comes: the kernel has ended


def serve(address: str) -> None:
    """Fork a kernel for each that asks, until the parent ends."""
    parent = os.getppid()
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()  # who comes early waits
        for name in IMPORTED:
            importlib.import_module(name)
        for package in WHOLE:
            for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
                importlib.import_module(module.name)
        gc.freeze()  # the kernels' collectors need not go through it
        door.settimeout(CHECKED_SECONDS)
        while os.getppid() == parent:
            try:
                line, _ = door.accept()
            except TimeoutError:
                continue
            finally:
                _reap()
            with line:
                if os.fork() == 0:
                    door.close()
                    _become_kernel(line)


def _reap() -> None:
    """Let go of the kernels that have ended."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


def _become_kernel(line: socket.socket) -> None:
    line.setblocking(True)
    size, outputs, _, _ = socket.recv_fds(line, 4, 2)
    wish = b""
    while len(wish) < int.from_bytes(size, "big"):
        wish += line.recv(1 << 16)
    connection_file, folder, environment = json.loads(wish)
    os.setsid()
    for known, given in enumerate(outputs, 1):
        os.dup2(given, known)
        os.close(given)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    # from here on the process that asked is silent: a signal comes when it ends, and ends this one (on Linux)
    fcntl.fcntl(line, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(line, fcntl.F_SETFL, fcntl.fcntl(line, fcntl.F_GETFL) | os.O_ASYNC)

    import ipywidgets
    from ipykernel.kernelapp import IPKernelApp

    app = IPKernelApp.instance()
    app.initialize(["-f", connection_file, f"--IPKernelApp.parent_handle={os.getppid()}"])
    ipywidgets.register_comm_target()  # as its import does, where there is a kernel
    app.start()
    os._exit(0)  # to take everything down again would take half a second


if __name__ == "__main__":
    if len(sys.argv) > 1:
        ask(os.environ[ADDRESS], sys.argv[1])
    else:
        del sys.path[0]  # this folder
        serve(os.environ[ADDRESS])
