"""Health check of the container: requests /healthz; the exit code is the result."""

import http.client
import os
import sys

port = int(os.environ["STREAM_FS_SERVICE__PORT"])
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=4)
try:
    connection.request("GET", "/healthz")
    answer = connection.getresponse()
    body = answer.read().decode(errors="replace").strip()
except OSError as error:
    sys.exit(f"port {port}: {error}")
print(body)
sys.exit(answer.status != http.client.OK)
