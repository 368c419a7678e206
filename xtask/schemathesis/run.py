"""Schemathesis against a server of its own: once for each role with a valid token, and once without one.

It fails where schemathesis finds something, where the document is none, where the server knows a path that the document does not have or
the other way round, and where an operation that a role may use never answered 2xx.

    xtask/schemathesis/run.py BINARY FOLDER [ROLE]...

BINARY is `parlor`; FOLDER takes what is installed and what is reported.
"""

import collections
import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
# The game that `parlor play` plays: its rooms are those in memory.
APP = "magpies"
SEED = "7700"
EXAMPLES = "12"
ROLES = ["nobody", "player", "server", "admin"]


# For players with an open JSON socket, which schemathesis has not. Tests of the services ask them with one.
NEEDS_SOCKET = {"presence.set", "turn.subscribe", "turn.unsubscribe"} | {f"matchmaking.{name}" for name in ("enter", "read", "leave", "confirm", "opened", "again")}
# For nodes of a cluster. The server here is alone. Tests of nodes ask them.
NEEDS_CLUSTER = {"admin.nodes", "admin.where", "admin.drain", "admin.undrain", "admin.move_live_room"}


def main():
    binary, folder, *roles = sys.argv[1:]
    binary, folder = pathlib.Path(binary).resolve(), pathlib.Path(folder).resolve()
    python = installed(folder)
    if pathlib.Path(sys.prefix) != folder / "venv":
        # Again, with what was installed.
        sys.exit(subprocess.run([python, __file__, binary, folder, *roles]).returncode)
    # Each role has a server of its own, and schemathesis uses one core.
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as side_by_side:
        found = side_by_side.map(lambda role: examined(role, binary, folder), roles or ROLES)
        faults = [fault for faults in found for fault in faults]
    for fault in faults:
        print(f"schemathesis: {fault}")
    sys.exit(1 if faults else 0)


def installed(folder):
    """The Python that has what requirements.txt pins, by version and hash."""
    subprocess.run(["sh", HERE.parent / "pinned.sh", HERE / "requirements.txt", folder / "venv"], check=True)
    return folder / "venv/bin/python"


def examined(role, binary, folder):
    """What is wrong for a role."""
    with tempfile.TemporaryDirectory(prefix="parlor-schemathesis-") as scratch:
        with served(binary, pathlib.Path(scratch)) as (url, address):
            return examined_at(url, address, role, binary, pathlib.Path(scratch), folder)


def examined_at(url, address, role, binary, scratch, folder):
    import requests
    from openapi_spec_validator import validate

    document = requests.get(f"{url}/v1/openapi.json", timeout=10).json()
    validate(document)
    tokens = {
        "player": requests.post(f"{url}/v1/auth/guest", json={"app": APP, "name": "ada"}, timeout=10).json(),
        **{one: operator_token(binary, scratch, one) for one in ("server", "admin")},
    }
    tokens["player"] = tokens["player"]["access_token"]
    faults = [] if role != "nobody" else routes_beside(document, url)
    close(document)
    file, seen = scratch / "openapi.json", scratch / "seen"
    file.write_text(json.dumps(document))
    seen.touch()
    command = [
        folder / "venv/bin/st", "--config-file", HERE / "schemathesis.toml", "run", file, "--url", url,
        "--seed", SEED, "--max-examples", EXAMPLES, "--no-color", "--generation-database", "none",
    ]  # fmt: skip
    if role != "nobody":
        command += ["--header", f"Authorization: Bearer {tokens[role]}"]
    told = {"PARLOR_URL": url, "PARLOR_TOKENS": json.dumps(tokens), "PARLOR_ROLE": role, "PARLOR_SEEN": str(seen)}
    told |= {"PARLOR_BINARY": str(binary), "PARLOR_SERVER": address}
    environment = {**os.environ, **told, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(HERE)}
    ended = subprocess.run(command, env=environment, cwd=scratch, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    report = folder / f"{role}.txt"
    report.write_text(ended.stdout + ended.stderr)
    answered = collections.defaultdict(collections.Counter)
    for line in seen.read_text().splitlines():
        operation, status = line.split()
        answered[operation][status] += 1
    faults += [f"{role}: {name} never answered 2xx, but {dict(answered[name])}"
               for name in allowed(document, role) if name not in NEEDS_SOCKET | NEEDS_CLUSTER and not answered[name]["200"]]  # fmt: skip
    count = sum(sum(by_status.values()) for by_status in answered.values())
    print(f"{role}: {count} answers of {len(answered)} operations, schemathesis ended with {ended.returncode}", flush=True)
    if ended.returncode != 0:
        print(ended.stdout + ended.stderr)
        faults.append(f"{role}: schemathesis found something: {report} says what")
    return faults


def allowed(document, role):
    """The operations that a role may use, by the document."""
    for methods in document["paths"].values():
        for operation in methods.values():
            if role in operation.get("x-roles", [role]):
                yield operation["operationId"]


def routes_beside(document, url):
    """Every method of every path of the document is as the document has it, and what it does not have is not there."""
    import requests

    faults = []
    methods = ["get", "post", "put", "patch", "delete"]
    for path, operations in document["paths"].items():
        for method in methods:
            # A field of a path that is no word that stands there otherwise.
            answer = requests.request(method, url + re.sub(r"\{\w+\}", "0", path), timeout=10)
            is_known = method in operations
            if is_known != (answer.status_code != 405):
                faults.append(f"{method} {path} answers {answer.status_code}")
    beside = [re.sub(r"\{\w+\}", "0", path) + "/beside" for path in document["paths"]]
    for path in ["/v1", "/v1/", "/v1/beside", "/v1/openapi.yaml", "/v2/rooms", *beside]:
        # What has a field where this has a word is another path of the document.
        if not any(re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path) for known in document["paths"]):
            answer = requests.get(url + path, timeout=10)
            if answer.status_code != 404:
                faults.append(f"get {path} answers {answer.status_code}")
    return faults


def close(schema):
    """Says of each object whose fields are named that it has no others: a later server may answer more, this one does not."""
    if isinstance(schema, dict):
        if "properties" in schema and "type" in schema:
            schema.setdefault("additionalProperties", False)
        schema = list(schema.values())
    if isinstance(schema, list):
        for inner in schema:
            close(inner)


@contextlib.contextmanager
def served(binary, scratch):
    """A server with a store in a folder of its own; gives where it is."""
    subprocess.run([binary, "token", "--new-key", scratch / "operator"], check=True, stdout=subprocess.DEVNULL)
    command = [
        binary, "serve", "--listen", "127.0.0.1", "--port", "0", "--data", scratch / "data",
        "--operator-key", scratch / "operator.pub",
    ]  # fmt: skip
    registry = {**os.environ, "XDG_RUNTIME_DIR": str(scratch), "XDG_STATE_HOME": str(scratch)}
    with open(scratch / "log", "w+") as log:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=registry)
        try:
            said = ""
            for line in server.stdout:
                said += line
                if line.startswith("Ctrl-C"):
                    break
            port, address = re.search(r"listens on port (\d+)", said), re.search(r"PARLOR_SERVER=(\S+)", said)
            if not port or not address:
                log.seek(0)
                raise SystemExit(f"the server did not start: {said}{log.read()}")
            yield f"http://127.0.0.1:{port[1]}", address[1]
        finally:
            server.terminate()
            server.communicate()
        if server.returncode != 0:
            raise SystemExit(f"the server ended with {server.returncode}")


def operator_token(binary, scratch, role):
    command = [binary, "token", "--key", scratch / "operator", "--role", role, "--app", APP, "--user", "schemathesis"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
