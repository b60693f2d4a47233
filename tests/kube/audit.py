"""What the API server writes down of the requests it answers."""

import json


def audit_flags(folder, *rules):
    """Flags of kube-apiserver by which it notes each request that one of these rules is about, such
    as {"users": ["alice"]}, once it is answered; and the file in which it does, a line of JSON each."""
    policy, log = folder / "audit-policy.json", folder / "audit.log"
    policy.write_text(json.dumps({
        "apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
        "rules": [*({"level": "Metadata"} | rule for rule in rules), {"level": "None"}]}))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log}"], log
