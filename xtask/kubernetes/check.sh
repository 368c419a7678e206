#!/bin/sh
# Validates deploy/kubernetes against the schemas of Kubernetes, which kubernetes-validate has with it, and that deploy/compose.yaml is YAML
# whose services have what they name.
set -eu

cd "$(dirname "$0")/../.."
sh xtask/pinned.sh xtask/kubernetes/requirements.txt target/kubernetes
for version in 1.27 1.31 1.35; do
    target/kubernetes/bin/kubernetes-validate --quiet --strict -k "$version" deploy/kubernetes/*.yaml
done
target/kubernetes/bin/python - deploy/compose.yaml <<'CHECK'
import sys, yaml

compose = yaml.safe_load(open(sys.argv[1]))
services, volumes = compose["services"], compose["volumes"]
assert set(services) == {"db", "a", "b"}, list(services)
for name, service in services.items():
    assert service["image"] and service["restart"], name
    for mount in service["volumes"]:
        assert mount.split(":")[0] in volumes, f"{name}: {mount} is no volume"
    for other in service.get("depends_on", {}):
        assert "healthcheck" in services[other], f"{name} waits for {other}, which has no health check"
ports = [services[node]["environment"][port] for node in "ab" for port in ("PARLOR_PORT", "PARLOR_LINE", "PARLOR_METRICS")]
assert len(set(ports)) == len(ports), ports
CHECK
