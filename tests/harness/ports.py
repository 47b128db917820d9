"""Free ports of this machine, each given to one test at a time."""

import atexit
import secrets
import socket

# Below the ports that systems give to clients, so that no connection takes the port of a server that restarts.
_PORTS = range(15_000, 30_000)


def free_ports() -> tuple[int, int]:
    """Two ports for servers. Nobody else who asks here gets them while this process lives, in whichever process."""
    return _free_port(), _free_port()


def _free_port() -> int:
    while True:
        port = secrets.choice(_PORTS)
        mark = socket.socket(type=socket.SOCK_DGRAM)  # UDP's port of the same number says that it is taken
        try:
            mark.bind(("127.0.0.1", port))
            with socket.socket() as tcp:
                tcp.bind(("127.0.0.1", port))
        except OSError:
            mark.close()
            continue
        atexit.register(mark.close)
        return port
