"""Hand this process's script over to the fork server (`zerogap.pipeline.forks`), if there is one.

Python imports this module when it starts, before anything that a script needs.
"""

import os
import sys

ADDRESS = os.environ.get("ZEROGAP_FORK_SERVER")
WORDS = sys.orig_argv[1:]

# The server's processes have one thread. `python -m` and `python -c` run no script, and what a
# library starts from its own folder may need more than three open files.
IS_SCRIPT = bool(WORDS) and WORDS[0][0] != "-" and "site-packages" not in WORDS[0]
if ADDRESS and IS_SCRIPT and os.environ.get("OMP_NUM_THREADS") == "1":
    import json
    import signal
    import socket

    with socket.socket(socket.AF_UNIX) as connection:
        try:
            connection.connect(ADDRESS)
        except OSError:  # it is still importing, or gone
            pass
        else:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # the job gets it too, and ends by it
            variables, folder = dict(os.environ), os.getcwd()
            job = {"words": WORDS, "path": sys.path, "variables": variables, "folder": folder}
            socket.send_fds(connection, [b"\n"], [0, 1, 2])
            connection.sendall(json.dumps(job).encode() + b"\n")
            code = int(connection.recv(8) or 1)
            if code < 0:
                os.kill(os.getpid(), -code)
            os._exit(code)
